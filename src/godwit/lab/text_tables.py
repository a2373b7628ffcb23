"""A summary as tables of text: for the terminal (rich) and for pages (Markdown)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table

from godwit.lab.rules import Verdict
from godwit.lab.summary import OfCase, Statistic, Summary

#: Columns that fit a page beside those of the case.
MEASURES_PER_GRID = 5
#: On the terminal: widths of the names of measures and of each case.
NAME_WIDTH, CASE_WIDTH = 38, 14
COLOURS = {
    Verdict.REPRODUCED: "green",
    Verdict.EXCEEDED: "bold green",
    Verdict.NOT_REPRODUCED: "red",
    Verdict.NOT_MEASURED: "dim",
}


@dataclass(frozen=True, slots=True)
class Grid:
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def values(summary: Summary) -> Iterator[Grid]:
    """A row for each case; as many grids as the measures need."""
    units = _units(summary)
    names = list(units)
    parameters = list(dict.fromkeys(name for of in summary.metrics for name in of.case))
    for start in range(0, len(names), MEASURES_PER_GRID):
        some = names[start : start + MEASURES_PER_GRID]
        rows = [
            [str(of.case.get(name, "")) for name in parameters]
            + [_with_spread(of.values.get(name)) for name in some]
            for of in summary.metrics
            if any(name in of.values for name in some)
        ]
        headings = [f"{name}, {units[name]}" if units[name] else name for name in some]
        yield Grid([*parameters, *headings], rows)


def claims(summary: Summary) -> Grid:
    rows = [
        [
            claim.id,
            claim.statement,
            claim.source,
            _number_or(claim.paper, ""),
            _number_or(claim.measured, "-"),
            claim.verdict.value,
            claim.rule,
        ]
        for claim in summary.claims
    ]
    return Grid(["claim", "says", "source", "stated", "measured", "verdict", "rule"], rows)


def markdown(grid: Grid) -> str:
    lines = [grid.headings, ["---"] * len(grid.headings), *grid.rows]
    return "".join(f"| {' | '.join(_escaped(cell) for cell in line)} |\n" for line in lines)


def rich_tables(summary: Summary, *, width: int) -> Iterator[Table]:
    """A column for each case, the means only, and then the claims."""
    at_once = max(1, (width - NAME_WIDTH) // CASE_WIDTH)
    for start in range(0, len(summary.metrics), at_once):
        yield _rich_values(summary, summary.metrics[start : start + at_once])
    if summary.claims:
        yield _rich_claims(summary)


def _rich_values(summary: Summary, cases: Sequence[OfCase]) -> Table:
    seeds = f"means over the seeds {', '.join(map(str, summary.seeds))}"
    table = Table(title=f"{summary.experiment}, {summary.scale}: {seeds}", title_style="bold")
    table.add_column("\n".join(cases[0].case), style="cyan")
    for of in cases:
        table.add_column("\n".join(map(str, of.case.values())), justify="right")
    for name, unit in _units(summary).items():
        if any(name in of.values for of in cases):
            means = (_number(of.values[name].mean) if name in of.values else "" for of in cases)
            table.add_row(f"{name}  [dim]{unit}[/]", *means)
    return table


def _rich_claims(summary: Summary) -> Table:
    table = Table(title="Claims", title_style="bold", show_lines=True)
    for heading in ("claim", "says", "stated", "measured", "verdict"):
        table.add_column(heading)
    for claim in summary.claims:
        stated, measured = _number_or(claim.paper, ""), _number_or(claim.measured, "-")
        verdict = f"[{COLOURS[claim.verdict]}]{claim.verdict.value}[/]"
        table.add_row(claim.id, claim.statement, stated, measured, verdict)
    return table


def _units(summary: Summary) -> dict[str, str]:
    """Units of all measures, in the order of the case with the most measures."""
    most = sorted(summary.metrics, key=lambda of: len(of.values), reverse=True)
    return {name: each.unit for of in most for name, each in of.values.items()}


def _with_spread(statistic: Statistic | None) -> str:
    if statistic is None:
        return "-"
    if not statistic.stddev:
        return _number(statistic.mean)
    return f"{_number(statistic.mean)} ± {_number(statistic.stddev, digits=2)}"


def _number(number: float, *, digits: int = 4) -> str:
    """With so many significant digits; large numbers in full."""
    return f"{number:,.0f}" if abs(number) >= 10**digits else f"{number:.{digits}g}"


def _number_or(number: float | None, otherwise: str) -> str:
    return otherwise if number is None else _number(number)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("<", "&lt;")
