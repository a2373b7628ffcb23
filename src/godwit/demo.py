"""The demonstration: stock quotes through a tree of brokers, every delivery checked.

Runs the production broker in virtual time, so minutes of market pass in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from godwit.simulation.oracle import Oracle, Verdict
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Percentiles, Statistics
from godwit.simulation.stock_scenario import StockScenario

BUSIEST_SHOWN = 10
BAR_WIDTH = 30
SLICES = 200
QUIET_S = 5.0
"""After the last quote, so that everything under way has arrived."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    scenario: StockScenario
    simulator: Simulator
    oracle: Oracle
    statistics: Statistics


def run_demo(console: Console, *, scenario: StockScenario, seed: int) -> DemoResult:
    """Play the scenario with live progress."""
    oracle, statistics = Oracle(settle_s=QUIET_S), Statistics()
    console.print(
        f"[bold]Godwit[/] plays stock quotes through {scenario.brokers} brokers:"
        f" {scenario.publishers} publishers, "
        f"{scenario.publishers * scenario.subscribers_per_publisher} subscribers,"
        f" {scenario.duration_s / 60:.0f} simulated minutes (seed {seed})"
    )
    simulator = scenario.build(seed=seed, observers=(oracle, statistics))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    end_s = scenario.duration_s + QUIET_S
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("joining", total=end_s, figures="")
        for slice_number in range(1, SLICES + 1):
            until_s = end_s * slice_number / SLICES
            simulator.run(until_s=until_s)
            phase = "joining" if until_s < scenario.joining_s else "publishing"
            figures = f"{statistics.publications:,} published, {statistics.deliveries:,} delivered"
            progress.update(task, completed=until_s, description=phase, figures=figures)
    oracle.finish(simulator.now_s)
    return DemoResult(scenario, simulator, oracle, statistics)


def render(result: DemoResult) -> list[Table]:
    return [_summary(result), _brokers(result)]


def _summary(result: DemoResult) -> Table:
    oracle, statistics = result.oracle, result.statistics
    table = Table(title="What happened", show_header=False, title_style="bold")
    table.add_column(style="cyan")
    table.add_column()
    table.add_row("publications", f"{statistics.publications:,}")
    table.add_row("deliveries", f"{statistics.deliveries:,}")
    table.add_row("checked against the oracle", _verdict(oracle))
    table.add_row("delay, ms", _percentiles(statistics.delay_s(), scale=1000.0, digits=1))
    table.add_row("hops", _percentiles(statistics.hops(), scale=1.0, digits=0))
    kinds = ", ".join(
        f"{count:,} {kind}" for kind, count in statistics.handled_by_kind.most_common(3)
    )
    table.add_row("messages handled by brokers", f"{statistics.handled:,}  [dim]({kinds}, ...)[/]")
    return table


def _verdict(oracle: Oracle) -> str:
    if oracle.is_satisfied:
        wrongs = ", ".join(f"none {verdict.value}" for verdict in Verdict)
        return f"[green]every one[/]: {wrongs}"
    return f"[red]{oracle.violation_count:,} violations[/], first: {oracle.violations[0]}"


def _percentiles(values: Percentiles, *, scale: float, digits: int) -> str:
    names = ("median", "p90", "p99", "highest")
    numbers = (values.p50, values.p90, values.p99, values.highest)
    return "   ".join(
        f"{name} [bold]{number * scale:.{digits}f}[/]"
        for name, number in zip(names, numbers, strict=True)
    )


def _brokers(result: DemoResult) -> Table:
    handled = result.statistics.handled_by_broker
    table = Table(title="Messages per broker, the busiest first", title_style="bold")
    table.add_column("broker", style="cyan")
    table.add_column("links", justify="right")
    table.add_column("messages", justify="right")
    table.add_column("")
    ranked = handled.most_common()
    most = ranked[0][1] if ranked else 1
    for name, count in islice(ranked, BUSIEST_SHOWN):
        links = len(result.simulator.topology.neighbours(name))
        table.add_row(name, str(links), f"{count:,}", "█" * max(1, BAR_WIDTH * count // most))
    others = ranked[BUSIEST_SHOWN:]
    if others:
        table.add_section()
        low, high = others[-1][1], others[0][1]
        table.add_row(f"{len(others)} others", "", f"{low:,} to {high:,}", "")
    return table
