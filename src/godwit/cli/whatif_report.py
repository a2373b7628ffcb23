"""A rehearsal as tables: before, after and the error beside them; loads of each broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from godwit.rehearsal.network_figures import NetworkFigures
from godwit.rehearsal.rehearsing import RehearsalReport, RehearsedOutcome

#: Brokers in the table of loads, at most: the most loaded.
SHOWN_MAX = 30
#: Figures: the name in the table, the format, and what a value is multiplied by.
ROWS = {
    "messages_per_s": ("messages/s", "{:,.0f}", 1.0),
    "deliveries_per_s": ("deliveries/s", "{:,.0f}", 1.0),
    "output_bytes_per_s": ("output kB/s", "{:,.1f}", 1e-3),
    "hops": ("hops", "{:.2f}", 1.0),
    "delay_mean_s": ("delay ms", "{:,.2f}", 1e3),
    "delay_p50_s": ("delay 50% ms", "{:,.2f}", 1e3),
    "delay_p99_s": ("delay 99% ms", "{:,.2f}", 1e3),
    "load_max": ("load, highest", "{:.1%}", 1.0),
    "load_mean": ("load, mean", "{:.1%}", 1.0),
    "load_cov": ("load, cov", "{:.2f}", 1.0),
    "input_utilisation": ("input, mean", "{:.1%}", 1.0),
    "output_utilisation": ("output, mean", "{:.1%}", 1.0),
    "busy_brokers": ("busy brokers", "{:.0f}", 1.0),
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
    for field, (name, form, factor) in ROWS.items():
        cells = [
            form.format(factor * getattr(each, field)) for each in (report.measured, report.before)
        ]
        cells.append(percent(report.error[field]))
        for outcome in report.outcomes:
            value = form.format(factor * getattr(outcome.after, field))
            cells.append(f"{value}  {percent(outcome.difference[field])}")
        table.add_row(name, *cells)
    if report.outcomes:
        moves = [str(outcome.moves) for outcome in report.outcomes]
        table.add_row("clients to move", "", "", "", *moves)
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
