"""The scenario as a demonstration: progress, and closing tables."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from godwit.demos.emergencies.checking import CheckResult, check
from godwit.demos.emergencies.emergency_processes import emergency_processes
from godwit.demos.emergencies.live_run import LiveRun, Sample, run_scenario
from godwit.demos.emergencies.scenario import EmergencyScenario

BAR_WIDTH = 30


async def demonstrate(console: Console, scenario: EmergencyScenario) -> tuple[LiveRun, CheckResult]:
    """Run it on this machine, with live progress, and check every delivered row."""
    town = scenario.town()
    console.print(
        f"[bold]Godwit[/] tells {scenario.users} people of emergencies: {scenario.brokers} brokers,"
        f" a coordinator ({scenario.placement}, {scenario.strategy}), seven channels on Spark;"
        f" {scenario.duration_s:.0f} seconds (seed {scenario.seed})"
    )
    with console.status("starting") as status:
        starting = emergency_processes(scenario, town, status.update)
        processes = await starting.__aenter__()
    try:
        with _progress(console) as progress:
            task = progress.add_task("", total=scenario.duration_s)

            def watch(at_s: float, run: LiveRun) -> None:
                progress.update(task, completed=at_s, description=_now(at_s, run))

            run = await run_scenario(scenario, town, processes, watch)
        with console.status("checking every delivered row"):
            await processes.stop_cluster()
            verdict = await asyncio.to_thread(check, processes.folder, run.logs)
    finally:
        await starting.__aexit__(None, None, None)
    return run, verdict


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(BAR_WIDTH), TimeRemainingColumn(),
        console=console,
    )  # fmt: skip


def _now(at_s: float, run: LiveRun) -> str:
    scenario = run.scenario
    if at_s < scenario.login_s:
        doing = "logging in"
    elif at_s < scenario.subscribed_s:
        doing = "subscribing"
    else:
        doing = "reporting" if at_s < scenario.duration_s else "settling"
    last = run.samples[-1] if run.samples else None
    cov = "" if last is None else f", cov {last.cov:.2f}"
    return (
        f"{doing}: {run.reports:,} reports, {run.deliveries:,} rows delivered,"
        f" {run.moves.get('moved', 0)} moves{cov}"
    )


def render(console: Console, run: LiveRun, verdict: CheckResult) -> None:
    console.print(_figures(run))
    console.print(_brokers(run))
    console.print(_channels(run))
    for move in run.last_moves[:3]:
        why = f"{move.client}: {move.source} to {move.target}, {move.why}"
        console.print(f"  moved  {why}", style="dim")
    if verdict.faults:
        console.print(f"[red]{len(verdict.faults)} faults[/], the first: {verdict.faults[0]}")
    else:
        console.print(
            f"[green]all {verdict.rows:,} rows of {verdict.executions} executions were delivered"
            " as a batch query says: nothing missing, nothing twice[/]"
        )


def _figures(run: LiveRun) -> Table:
    table = Table(box=None, show_header=False)
    last = run.samples[-1] if run.samples else Sample(0, 0, 0, 0, 0, 0)
    fe = max((sample.fe for sample in run.samples), default=0)
    be = max((sample.be for sample in run.samples), default=0)
    worst = max(_loaded(run.samples), key=lambda sample: sample.cov, default=last)
    delays = sorted(delay for log in run.logs for delay in log.delays_s)
    quarantined = sum(d.rows for d in run.datasets if d.name.endswith("_quarantine"))
    rows = {
        "published": f"{run.reports:,} reports, {run.locations:,} places",
        "in quarantine": f"{quarantined:,}",
        "rows delivered": f"{run.deliveries:,}",
        "subscriptions": f"{fe:,} FE, {be:,} BE ({fe / be if be else 0:.1f} share one)",
        "delay": f"{_at(delays, 0.5):.1f} s p50, {_at(delays, 0.99):.1f} s p99, from the execution",
        "cov of the loads": f"{worst.cov:.2f} at worst, {last.cov:.2f} at the end",
        "maximum load": f"{worst.maximum_load:,.0f} bytes/s then, {last.maximum_load:,.0f} at the"
        f" end (mean {last.mean_load:,.0f})",
        "plans, moves": f"{run.plans} plans; "
        + (", ".join(f"{count} {what}" for what, count in run.moves.items()) or "no moves"),
    }
    for name, text in rows.items():
        table.add_row(name, text)
    return table


def _loaded(samples: Sequence[Sample]) -> list[Sample]:
    """Without the first ones: with few subscriptions the imbalance says little."""
    most = max((sample.mean_load for sample in samples), default=0.0)
    return [sample for sample in samples if sample.mean_load > most / 4]


def _at(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def _brokers(run: LiveRun) -> Table:
    table = Table("broker", box=None)
    for name in ("subscribers", "BE", "load", "bytes in/s", "bytes out/s"):
        table.add_column(name, justify="right")
    for broker in run.brokers:
        table.add_row(
            broker.broker,
            str(broker.subscribers),
            str(broker.be_subscriptions),
            f"{broker.load:,.0f}",
            f"{broker.bytes_in_per_s:,.0f}",
            f"{broker.bytes_out_per_s:,.0f}",
        )
    return table


def _channels(run: LiveRun) -> Table:
    table = Table("channel", "every", box=None)
    for name in ("BE", "executions", "rows of the last", "took"):
        table.add_column(name, justify="right")
    for channel in run.channels:
        last = channel.last[0] if channel.last else None
        cells = ("0", "", "") if last is None else (
            str(last.execution), f"{last.rows:,}", f"{last.took_s or 0:.2f} s"
        )  # fmt: skip
        table.add_row(channel.name, f"{channel.every_s:g} s", str(channel.subscriptions), *cells)
    return table
