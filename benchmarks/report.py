"""A measurement as a row, and rows as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; `holds` is whether `compared` reaches the `bar`."""

    measure: str
    workload: str
    size: int
    reference: float | None
    measured: float
    compared: float
    bar: float | None = None
    is_at_most: bool = False

    @property
    def holds(self) -> bool | None:
        if self.bar is None:
            return None
        return self.compared <= self.bar if self.is_at_most else self.compared >= self.bar


def as_table(title: str, results: Sequence[Row]) -> Table:
    """`reference` is the baseline of the same run; compare ratios, not speeds, across machines."""
    table = Table(title=title)
    for heading in ("", "size", "measure", "reference", "measured", "ratio", "bar", "verdict"):
        table.add_column(heading, justify="left" if heading in ("", "measure") else "right")
    for row in results:
        sign = "<=" if row.is_at_most else ">="
        table.add_row(
            row.workload,
            f"{row.size:,}",
            row.measure,
            "" if row.reference is None else _figure(row.reference),
            _figure(row.measured),
            "" if row.reference is None else f"{_figure(row.measured / row.reference)} x",
            "" if row.bar is None else f"{sign} {_figure(row.bar)}",
            "" if row.holds is None else "held" if row.holds else "MISSED",
        )
    return table


def _figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:,.3g}"
