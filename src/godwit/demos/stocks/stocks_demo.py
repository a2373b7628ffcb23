"""The demonstration: stock quotes through brokers; the oracle checks every delivery.

The same scenario runs live, through processes on loopback, or simulated.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

import uvloop
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.overlay import Overlay
from godwit.overlay.topology import Topology
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.policies import placement
from godwit.policies.placement.settings import PlacementSettings
from godwit.runtime.processes import Processes
from godwit.runtime.settings import network_of
from godwit.simulation.oracle import Oracle, ViolationKind
from godwit.simulation.simulator import NO_SETTINGS
from godwit.simulation.statistics import Percentiles, Statistics
from godwit.testing import live_play
from godwit.testing.live_play import QUIET_S

BUSIEST_SHOWN = 10
BAR_WIDTH = 30
SLICES = 200


@dataclass(frozen=True, slots=True)
class DemoResult:
    topology: Topology
    oracle: Oracle
    statistics: Statistics
    handled_by_broker: Counter[str]
    handled_by_kind: Counter[str]


def play_simulated(
    console: Console,
    topology: Topology,
    scenario: StockScenario,
    *,
    seed: int,
    policy: PlacementSettings | None = None,
    overlay: Overlay = TreeRouting,
    settings: Mapping[str, Any] = NO_SETTINGS,
) -> DemoResult:
    """Play the scenario in virtual time, with live progress; `policy` moves publishers."""
    oracle, statistics = Oracle(settle_s=QUIET_S), Statistics()
    minutes = scenario.duration_s / 60
    _announce(console, topology, scenario, f"{minutes:.0f} simulated minutes (seed {seed})")
    simulator = scenario.build(
        seed=seed,
        topology=topology,
        overlay=overlay,
        settings=settings,
        modules=placement.modules(policy or "static", seed=seed),
        observers=(oracle, statistics),
    )
    end_s = scenario.duration_s + QUIET_S
    with _progress(console, end_s) as (progress, task):
        for slice_number in range(1, SLICES + 1):
            until_s = end_s * slice_number / SLICES
            simulator.run(until_s=until_s)
            _update(progress, task, until_s, scenario, statistics)
    oracle.finish(simulator.now_s)
    return DemoResult(
        topology, oracle, statistics, statistics.handled_by_broker, statistics.handled_by_kind
    )


def play_live(
    console: Console, topology: Topology, scenario: StockScenario, *, seed: int
) -> DemoResult:
    """Play the scenario through broker processes on loopback, with live progress."""
    return uvloop.run(_play_live(console, topology, scenario, seed))


async def _play_live(
    console: Console, topology: Topology, scenario: StockScenario, seed: int
) -> DemoResult:
    seconds = scenario.duration_s
    _announce(console, topology, scenario, f"{seconds:.0f} seconds, live (seed {seed})")
    network = network_of(topology, http_port=0)
    with console.status(f"starting {len(topology.brokers)} broker processes"):
        running = await Processes(network).__aenter__()
    try:
        oracle, statistics = await _play(console, running, topology, scenario, seed)
        by_broker, by_kind = await asyncio.to_thread(_handled, running, topology)
    finally:
        await running.stop()
    return DemoResult(topology, oracle, statistics, by_broker, by_kind)


async def _play(
    console: Console, running: Processes, topology: Topology, scenario: StockScenario, seed: int
) -> tuple[Oracle, Statistics]:
    oracle, statistics = Oracle(settle_s=QUIET_S), Statistics()
    workload, joining = scenario.workload(topology, Random(seed))
    playing = live_play.play(
        running.url,
        workload,
        joining,
        from_s=scenario.joining_s,
        until_s=scenario.duration_s,
        oracle=oracle,
        watching=(statistics,),
    )
    async with asyncio.TaskGroup() as acting:
        acting.create_task(playing)
        await _watch(console, scenario, statistics, time.monotonic())
    return oracle, statistics


async def _watch(
    console: Console, scenario: StockScenario, statistics: Statistics, start_s: float
) -> None:
    with _progress(console, scenario.duration_s) as (progress, task):
        elapsed_s = 0.0
        while elapsed_s < scenario.duration_s:
            await asyncio.sleep(0.1)
            elapsed_s = time.monotonic() - start_s
            _update(progress, task, elapsed_s, scenario, statistics)


def _handled(running: Processes, topology: Topology) -> tuple[Counter[str], Counter[str]]:
    """Messages handled by broker and by kind, from the brokers' metrics."""
    by_broker: Counter[str] = Counter()
    by_kind: Counter[str] = Counter()
    for broker in topology.brokers:
        with urllib.request.urlopen(f"{running.http(broker)}/metrics") as answer:  # noqa: S310
            text = answer.read().decode()
        for family in text_string_to_metric_families(text):
            if family.name == "godwit_messages_handled":
                for sample in family.samples:
                    by_broker[broker] += int(sample.value)
                    by_kind[sample.labels["kind"]] += int(sample.value)
    return by_broker, by_kind


def _announce(console: Console, topology: Topology, scenario: StockScenario, how: str) -> None:
    subscribers = scenario.publishers * scenario.subscribers_per_publisher
    console.print(
        f"[bold]Godwit[/] plays stock quotes through {len(topology.brokers)} brokers:"
        f" {scenario.publishers} publishers, {subscribers} subscribers, {how}"
    )


@contextlib.contextmanager
def _progress(console: Console, total_s: float) -> Iterator[tuple[Progress, TaskID]]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield progress, progress.add_task("joining", total=total_s, figures="")


def _update(
    progress: Progress,
    task: TaskID,
    now_s: float,
    scenario: StockScenario,
    statistics: Statistics,
) -> None:
    phase = "joining" if now_s < scenario.joining_s else "publishing"
    figures = f"{statistics.publications:,} published, {statistics.deliveries:,} delivered"
    progress.update(task, completed=now_s, description=phase, figures=figures)


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
    if statistics.moves:
        table.add_row("moves of publishers", f"{statistics.moves:,}")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in result.handled_by_kind.most_common(3))
    handled = result.handled_by_broker.total()
    table.add_row("messages handled by brokers", f"{handled:,}  [dim]({kinds}, ...)[/]")
    return table


def _verdict(oracle: Oracle) -> str:
    if oracle.is_satisfied:
        wrongs = ", ".join(f"none {verdict.value}" for verdict in ViolationKind)
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
    handled = result.handled_by_broker
    table = Table(title="Messages per broker, the busiest first", title_style="bold")
    table.add_column("broker", style="cyan")
    table.add_column("links", justify="right")
    table.add_column("messages", justify="right")
    table.add_column("")
    ranked = handled.most_common()
    most = ranked[0][1] if ranked else 1
    for name, count in islice(ranked, BUSIEST_SHOWN):
        links = len(result.topology.neighbours(name))
        table.add_row(name, str(links), f"{count:,}", "█" * max(1, BAR_WIDTH * count // most))
    others = ranked[BUSIEST_SHOWN:]
    if others:
        table.add_section()
        low, high = others[-1][1], others[0][1]
        table.add_row(f"{len(others)} others", "", f"{low:,} to {high:,}", "")
    return table
