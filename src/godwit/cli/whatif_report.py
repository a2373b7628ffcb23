"""A rehearsal as tables: before, after and the error beside them; loads of each broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from godwit.rehearsal.network_figures import NetworkFigures
from godwit.rehearsal.rehearsing import RehearsalReport, RehearsedOutcome

#: Brokers in the table of loads, at most: the most loaded.
SHOWN_MAX = 30
#: Figures, their names in the table, and their format.
ROWS = {
    "messages_per_s": ("messages at brokers", "{:,.0f}/s"),
    "deliveries_per_s": ("deliveries", "{:,.0f}/s"),
    "output_bytes_per_s": ("output", "{:,.0f} B/s"),
    "hops": ("hops of a delivery", "{:.2f}"),
    "delay_mean_s": ("delay, mean", "{:.5f} s"),
    "delay_p50_s": ("delay, median", "{:.5f} s"),
    "delay_p99_s": ("delay, 99%", "{:.5f} s"),
    "load_max": ("load, highest", "{:.1%}"),
    "load_mean": ("load, mean", "{:.1%}"),
    "load_cov": ("load, cov", "{:.2f}"),
    "input_utilisation": ("input utilisation, mean", "{:.2%}"),
    "output_utilisation": ("output utilisation, mean", "{:.2%}"),
    "busy_brokers": ("brokers with work", "{:.0f}"),
}


def print_report(report: RehearsalReport, console: Console) -> None:
    console.print(figures_table(report))
    console.print(loads_table(report))
    for line in report_lines(report):
        console.print(line)


def figures_table(report: RehearsalReport) -> Table:
    table = Table(title="before and after, simulated")
    table.add_column("figure")
    for name in ("measured", "before", "error"):
        table.add_column(name, justify="right")
    for outcome in report.outcomes:
        table.add_column(outcome.change, justify="right")
    for field, (name, form) in ROWS.items():
        cells = [form.format(getattr(report.measured, field))]
        cells.append(form.format(getattr(report.before, field)))
        cells.append(percent(report.error[field]))
        for outcome in report.outcomes:
            value = form.format(getattr(outcome.after, field))
            cells.append(f"{value}  {percent(outcome.difference[field])}")
        table.add_row(name, *cells)
    if report.outcomes:
        moves = [str(outcome.moves) for outcome in report.outcomes]
        table.add_row("clients that move", "", "", "", *moves)
        links = [str(outcome.new_links) for outcome in report.outcomes]
        table.add_row("new links", "", "", "", *links)
    return table


def loads_table(report: RehearsalReport) -> Table:
    table = Table(title="load of each broker: input, output utilisation")
    table.add_column("broker")
    columns = {"measured": report.measured, "before": report.before}
    columns |= {outcome.change: outcome.after for outcome in report.outcomes}
    for name in columns:
        table.add_column(name, justify="right")
    names = _most_loaded(list(columns.values()))
    for broker in sorted(names[:SHOWN_MAX]):
        table.add_row(broker, *(_load(figures, broker) for figures in columns.values()))
    if len(names) > SHOWN_MAX:
        table.caption = f"the {SHOWN_MAX} most loaded of {len(names)}"
    return table


def _most_loaded(columns: Sequence[NetworkFigures]) -> list[str]:
    highest: dict[str, float] = {}
    for figures in columns:
        for name, each in figures.brokers.items():
            load = max(each.input_utilisation, each.output_utilisation)
            highest[name] = max(load, highest.get(name, 0.0))
    return sorted(highest, key=lambda name: (-highest[name], name))


def _load(figures: NetworkFigures, broker: str) -> str:
    each = figures.brokers.get(broker)
    return "-" if each is None else f"{each.input_utilisation:.1%}, {each.output_utilisation:.1%}"


def report_lines(report: RehearsalReport) -> Iterator[str]:
    when = "another time" if report.is_independent else "the time that the simulation was set by"
    yield f"error: the unchanged network, simulated, against what was measured at {when}"
    for outcome in report.outcomes:
        yield gain_line(outcome, report)
        yield from (f"  {note}" for note in outcome.notes)
    yield from report.notes


def gain_line(outcome: RehearsedOutcome, report: RehearsalReport) -> str:
    said = f"{outcome.change}: gain of {report.objective} {percent(outcome.gain)}"
    if outcome.gain is not None and outcome.gain > 0 and not outcome.is_certain:
        return f"{said}, which is not more than the error of the simulation"
    return said


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1%}"
