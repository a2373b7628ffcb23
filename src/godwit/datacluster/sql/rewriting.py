"""Rewrites a channel's query for all its subscriptions at once.

The subscriptions are a relation `_s`: a row each, with the id and the arguments.  A parameter of
the query becomes a column of `_s`.  The rows of a subscription are those that the query alone would
give with its arguments:

    SELECT x FROM NEW r WHERE r.type = :type
    SELECT _s._subscription, x FROM _s JOIN r ON r.type = _s.type

    GROUP BY y                        GROUP BY _s._subscription, y
    JOIN (SELECT ... :p ...) d        d has its own _s, and d._subscription = _s._subscription
    ORDER BY z LIMIT 3                the first three of each subscription
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.schema import MappingSchema

from godwit.datacluster.sql import grid
from godwit.datacluster.sql.channel_query import SUBSCRIPTION, SUBSCRIPTIONS, CheckedQuery
from godwit.datacluster.sql.expressions import DIALECT, column, conjuncts
from godwit.datacluster.sql.join_keys import GridKey, references
from godwit.datacluster.sql.join_order import JoinOrder, SubscriptionBoxes, subscriptions
from godwit.datacluster.sql.null_on_error import null_on_error
from godwit.datacluster.sql.safe_sql import DISTANCE
from godwit.errors import UsageError

#: Columns of `_s`: the level of a subscription's box, and its cells; see grid.py.
LEVEL = "_level_{}"
CELLS = "_cells_{}"
#: Placeholder in the tree for the array of all levels that occur, ...
LEVELS = "_levels_{}"
#: ... and for the time of the execution.
MOMENT = "_moment"
RANK = "_rank"
RANKED = "_ranked"


class SubscriptionBox(msgspec.Struct, frozen=True):
    """The values of the columns `_level_0`, `_cells_0`; `_level_1`, `_cells_1` ... of `_s`."""

    level: exp.Expr
    cells: exp.Expr | None
    """None if they depend on more than the subscription."""


class RewrittenQuery(msgspec.Struct, frozen=True):
    """The query that is run.  Its tables are named by `Source.view`, and `_s`."""

    tree: exp.Select
    boxes: tuple[SubscriptionBox, ...]
    """The columns of subscriptions besides their arguments."""

    has_subscriptions: bool
    """If not, the channel has no parameters and its results belong to its one subscription."""


def rewrite_for_all(query: CheckedQuery) -> RewrittenQuery:
    rewriting = _Rewriting(query)
    tree = null_on_error(query.tree)
    order, limit = tree.args.get("order"), tree.args.get("limit")
    tree.set("order", None)
    tree.set("limit", None)
    made, is_bound = rewriting.block(tree)
    if limit is not None:
        assert order is not None, "checked"
        made = _limit_each(made, order, limit, is_bound=is_bound)
    _expand(made)
    return RewrittenQuery(made, tuple(rewriting.boxes), is_bound)


class _Relation(NamedTuple):
    item: exp.Expr
    is_bound: bool
    """It has rows for each subscription, with its id."""

    on: list[exp.Expr]
    """The conditions of a LEFT JOIN."""


class _Rewriting:
    def __init__(self, query: CheckedQuery) -> None:
        self._schema = MappingSchema({**query.schema}, dialect=DIALECT)
        self.boxes: list[SubscriptionBox] = []
        self._grids = 0

    def block(self, select: exp.Select) -> tuple[exp.Select, bool]:
        """A SELECT for all subscriptions, and whether it depends on them."""
        inner, left, where = self._split(select)
        relations = inner | left
        is_bound = _names_a_parameter(select) or any(r.is_bound for r in relations.values())
        for alias, relation in relations.items():
            if relation.is_bound:
                (where if alias in inner else relation.on).append(_same_subscription(alias))
        where = self._typed(where, relations, is_bound=is_bound)
        items = {alias: relation.item for alias, relation in inner.items()}
        first = SUBSCRIPTIONS if is_bound else next(iter(items))
        start = subscriptions() if is_bound else items.pop(first)
        order = JoinOrder((first, start), grid_name=self._grid_name, boxes=self._boxes)
        order.join_all(items, where)
        for alias, relation in left.items():
            on = self._typed(relation.on, relations, is_bound=is_bound)
            order.join_left(alias, relation.item, on)
        rest = [condition for condition in where if not any(condition is k for k in order.keys)]
        return _assemble(select, order, rest, is_bound=is_bound), is_bound

    def _grid_name(self) -> str:
        self._grids += 1
        return f"_g{self._grids}"

    def _boxes(self, key: GridKey) -> SubscriptionBoxes:
        number = len(self.boxes)
        own = column(LEVEL.format(number), SUBSCRIPTIONS)
        is_own = set().union(*map(references, key.corners)) <= {SUBSCRIPTIONS}
        cells = grid.cells(key.box(key.corners), own) if is_own else None
        self.boxes.append(SubscriptionBox(key.level, cells))
        known = column(CELLS.format(number), SUBSCRIPTIONS) if is_own else None
        return SubscriptionBoxes(own, exp.column(LEVELS.format(number)), known)

    def _split(
        self, select: exp.Select
    ) -> tuple[dict[str, _Relation], dict[str, _Relation], list[exp.Expr]]:
        """The relations of JOINs, those of LEFT JOINs, and the conditions."""
        given = select.args.get("where")
        where = list(conjuncts(given.this)) if given else []
        inner: dict[str, _Relation] = {}
        left: dict[str, _Relation] = {}
        self._add(select.args["from_"].this, [], inner)
        for join in select.args.get("joins") or []:
            on = list(conjuncts(join.args.get("on")))
            side, kind = join.side.upper(), join.kind.upper()
            if side == "LEFT" and kind in ("", "OUTER"):
                self._add(join.this, on, left)
            elif side == "" and kind in ("", "INNER", "CROSS"):
                self._add(join.this, [], inner)
                where += on
            else:
                said = " ".join(word for word in (side, kind, "JOIN") if word)
                raise UsageError(f"a channel may use JOIN or LEFT JOIN, not {said}")
        return inner, left, where

    def _add(self, item: exp.Expr, on: list[exp.Expr], to: dict[str, _Relation]) -> None:
        if not isinstance(item, exp.Subquery):
            to[item.alias_or_name] = _Relation(item, is_bound=False, on=on)
            return
        assert isinstance(item.this, exp.Select), "checked"
        block, is_bound = self.block(item.this)
        to[item.alias] = _Relation(block.subquery(item.alias), is_bound, on)

    def _typed(
        self,
        conditions: Sequence[exp.Expr],
        relations: dict[str, _Relation],
        *,
        is_bound: bool,
    ) -> list[exp.Expr]:
        """The conditions, annotated with types."""
        items = [relation.item for relation in relations.values()]
        if is_bound:
            items.append(subscriptions())
        select = exp.select(*(condition.copy() for condition in conditions)).from_(items[0].copy())
        for item in items[1:]:
            select = select.join(item.copy(), join_type="cross", copy=False)
        annotate_types(select, schema=self._schema, dialect=DIALECT)
        return [item.unalias() for item in select.expressions]


def _names_a_parameter(select: exp.Select) -> bool:
    """Whether it has a parameter outside the queries of its FROM."""
    return any(
        item.table == SUBSCRIPTIONS and not _is_within_from(item, select)
        for item in select.find_all(exp.Column)
    )


def _is_within_from(item: exp.Expr, select: exp.Select) -> bool:
    node: exp.Expr | None = item
    while node is not None and node is not select:
        if isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join):
            return True
        node = node.parent
    return False


def _same_subscription(alias: str) -> exp.EQ:
    own = column(SUBSCRIPTION, SUBSCRIPTIONS)
    return exp.EQ(this=column(SUBSCRIPTION, alias), expression=own)


def _assemble(
    select: exp.Select, order: JoinOrder, where: Sequence[exp.Expr], *, is_bound: bool
) -> exp.Select:
    made = select.copy()
    made.set("from_", exp.From(this=order.first.copy()))
    made.set("joins", order.joins)
    made.set("where", exp.Where(this=exp.and_(*where, copy=True)) if where else None)
    if not is_bound:
        return made
    key = column(SUBSCRIPTION, SUBSCRIPTIONS)
    made.set("expressions", [exp.alias_(key, SUBSCRIPTION, quoted=True), *made.expressions])
    group = made.args.get("group")
    if group is not None:
        # Arguments are constant for a subscription, so grouping by them changes nothing.
        used = {item.name for item in select.find_all(exp.Column) if item.table == SUBSCRIPTIONS}
        arguments = [column(name, SUBSCRIPTIONS) for name in sorted(used)]
        group.set("expressions", [key.copy(), *arguments, *group.expressions])
    return made


def _limit_each(
    tree: exp.Select, order: exp.Order, limit: exp.Limit, *, is_bound: bool
) -> exp.Select:
    """ORDER BY ... LIMIT n, for each subscription."""
    if tree.args.get("distinct"):
        raise UsageError("a channel may use DISTINCT or LIMIT, not both")
    if not (isinstance(limit.expression, exp.Literal) and limit.expression.is_int):
        raise UsageError("LIMIT takes a number")
    named = {item.alias: item.unalias() for item in tree.expressions}
    order = order.copy()
    for item in list(order.find_all(exp.Column)):
        if not item.table and item.name in named:
            item.replace(named[item.name].copy())
    within = [column(SUBSCRIPTION, SUBSCRIPTIONS)] if is_bound else []
    rank = exp.Window(this=exp.RowNumber(), partition_by=within, order=order)
    ranked = tree.select(exp.alias_(rank, RANK)).subquery(RANKED)
    chosen = [exp.alias_(column(name, RANKED), name, quoted=True) for name in named]
    first = exp.LTE(this=column(RANK, RANKED), expression=limit.expression.copy())
    return exp.select(*chosen).from_(ranked).where(first)


def _expand(tree: exp.Expr) -> exp.Expr:
    """Replace `distance` by its formula, `current_timestamp` by the time of the execution."""
    for node in reversed(list(tree.walk())):
        if isinstance(node, exp.Anonymous) and node.name.lower() == DISTANCE:
            node.replace(grid.distance(*node.expressions))
        elif isinstance(node, exp.CurrentTimestamp):
            node.replace(exp.column(MOMENT))
    return tree
