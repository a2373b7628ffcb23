"""An order of relations in which each has a key to those before it.

Without a key the join would compare everything with everything: the query is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from godwit.datacluster.sql import grid
from godwit.datacluster.sql.channel_query import SUBSCRIPTIONS
from godwit.datacluster.sql.expressions import call, column
from godwit.datacluster.sql.join_keys import GridKey, equality_keys, grid_key
from godwit.errors import UsageError

CELL = "cell"


class SubscriptionBoxes(NamedTuple):
    """Columns of the subscriptions with their boxes."""

    own: exp.Expr
    """The level of a subscription's box."""

    all: exp.Expr
    """An array of the levels that occur."""

    cells: exp.Expr | None
    """An array of the cells of its box, if they depend only on the subscription."""


class JoinOrder:
    def __init__(
        self,
        first: tuple[str, exp.Expr],
        *,
        grid_name: Callable[[], str],
        boxes: Callable[[GridKey], SubscriptionBoxes],
    ) -> None:
        alias, self.first = first
        self.joins: list[exp.Join] = []
        self.keys: list[exp.Expr] = []
        """Conditions that the joins already check."""
        self._joined = {alias}
        self._grid_name = grid_name
        self._boxes = boxes

    def join_all(self, relations: dict[str, exp.Expr], where: Sequence[exp.Expr]) -> None:
        waiting = dict(relations)
        while waiting:
            alias = self._next(waiting, where)
            self._join(alias, waiting.pop(alias), where)

    def join_left(self, alias: str, item: exp.Expr, on: Sequence[exp.Expr]) -> None:
        found = grid_key(on, alias, self._joined)
        if found is not None and found.is_constant:  # Then a row of the left side has one cell.
            item, key = self._with_cells(alias, item, found)
            on = [key, *on]
        elif not equality_keys(on, alias, self._joined):
            raise UsageError(_lacks_a_key(alias))
        self._append(alias, item, on, side="LEFT")

    def _next(self, waiting: dict[str, exp.Expr], where: Sequence[exp.Expr]) -> str:
        for alias in waiting:
            if equality_keys(where, alias, self._joined):
                return alias
        for alias in waiting:
            if grid_key(where, alias, self._joined):
                return alias
        raise UsageError(_lacks_a_key(next(iter(waiting))))

    def _join(self, alias: str, item: exp.Expr, where: Sequence[exp.Expr]) -> None:
        equalities = equality_keys(where, alias, self._joined)
        self.keys += equalities
        on = list(equalities)
        found = grid_key(where, alias, self._joined)
        if found is not None and (found.is_selective or not on):
            item, key = self._with_cells(alias, item, found)
            on.append(key)
        self._append(alias, item, on)

    def _append(self, alias: str, item: exp.Expr, on: Sequence[exp.Expr], side: str = "") -> None:
        condition = exp.and_(*on, copy=True)
        self.joins.append(exp.Join(this=item.copy(), on=condition, side=side))
        self._joined.add(alias)

    def _with_cells(self, alias: str, item: exp.Expr, key: GridKey) -> tuple[exp.Expr, exp.Expr]:
        """The relation with its cells, and the join condition."""
        name = self._grid_name()
        if key.is_constant:
            corners = [f"{name}_{place}" for place in range(len(key.corners))]
            measured = _with(alias, item, dict(zip(corners, key.corners, strict=True)))
            box = key.box([column(corner, alias) for corner in corners])
            cells = call("explode", grid.cells(box, key.level))
            cell = grid.cell(key.point, key.level)
            return _with(alias, measured, {name: cells}), _equal(column(name, alias), cell)
        boxes = self._boxes(key)
        cells = boxes.cells or grid.cells(key.box(key.corners), boxes.own)
        self.joins.append(_exploded(cells, name))
        level = f"{name}_level"
        on_levels = _with(alias, item, {level: call("explode", boxes.all)})
        cell = grid.cell(key.point, column(level, alias))
        joined = _with(alias, on_levels, {name: cell})
        return joined, _equal(column(name, alias), column(CELL, name))


def _exploded(cells: exp.Expr, name: str) -> exp.Join:
    alias = exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier(CELL)])
    return exp.Join(this=exp.Lateral(this=call("explode", cells), alias=alias), kind="CROSS")


def _with(alias: str, item: exp.Expr, more: Mapping[str, exp.Expr]) -> exp.Subquery:
    """A relation with more columns."""
    everything = exp.Column(this=exp.Star(), table=exp.to_identifier(alias, quoted=True))
    added = [exp.alias_(value, name) for name, value in more.items()]
    made = exp.select(everything, *added).from_(item.copy()).subquery(alias)
    assert isinstance(made, exp.Subquery)
    return made


def _equal(one: exp.Expr, other: exp.Expr) -> exp.EQ:
    return exp.EQ(this=one, expression=other)


def _lacks_a_key(alias: str) -> str:
    return (
        f"the channel lacks a key to {alias}, which would be compared with everything: add an"
        " equality, distance(...) below a constant or a parameter, or a range with both ends"
    )


def subscriptions() -> exp.Expr:
    return exp.to_table(SUBSCRIPTIONS).as_(SUBSCRIPTIONS, quoted=True)
