"""The scenario as a demonstration: progress, and a closing table that a person enjoys."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from godwit.emergencies.checking import Verdict, check
from godwit.emergencies.playing import Played, Sample, play
from godwit.emergencies.scenario import EmergencyScenario
from godwit.emergencies.stage import staged

BAR_WIDTH = 30


async def demonstrate(console: Console, scenario: EmergencyScenario) -> tuple[Played, Verdict]:
    """Run it on this machine, with live progress, and check everything that was delivered."""
    cast = scenario.cast()
    console.print(
        f"[bold]Godwit[/] tells {scenario.users} people of emergencies: {scenario.brokers} brokers,"
        f" a coordinator ({scenario.placement}, {scenario.strategy}), seven channels on Spark;"
        f" {scenario.duration_s:.0f} seconds (seed {scenario.seed})"
    )
    with console.status("starting") as status:
        staging = staged(scenario, cast, status.update)
        stage = await staging.__aenter__()
    try:
        with _progress(console) as progress:
            task = progress.add_task("", total=scenario.duration_s)

            def watch(at_s: float, played: Played) -> None:
                progress.update(task, completed=at_s, description=_now(at_s, played))

            played = await play(scenario, cast, stage, watch)
        with console.status("checking every row that was delivered"):
            await stage.stop_cluster()
            verdict = await asyncio.to_thread(check, stage.folder, played.told)
    finally:
        await staging.__aexit__(None, None, None)
    return played, verdict


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(BAR_WIDTH), TimeRemainingColumn(),
        console=console,
    )  # fmt: skip


def _now(at_s: float, played: Played) -> str:
    scenario = played.scenario
    if at_s < scenario.login_s:
        doing = "logging in"
    elif at_s < scenario.subscribed_s:
        doing = "subscribing"
    else:
        doing = "reporting" if at_s < scenario.duration_s else "settling"
    last = played.samples[-1] if played.samples else None
    cov = "" if last is None else f", cov {last.cov:.2f}"
    return (
        f"{doing}: {played.reports:,} reports, {played.deliveries:,} rows delivered,"
        f" {played.moves.get('moved', 0)} moves{cov}"
    )


def render(console: Console, played: Played, verdict: Verdict) -> None:
    console.print(_figures(played))
    console.print(_brokers(played))
    console.print(_channels(played))
    for move in played.last_moves[:3]:
        why = f"{move.client}: {move.source} to {move.target}, {move.why}"
        console.print(f"  moved  {why}", style="dim")
    if verdict.faults:
        console.print(f"[red]{len(verdict.faults)} faults[/], the first: {verdict.faults[0]}")
    else:
        console.print(
            f"[green]all {verdict.rows:,} rows of {verdict.executions} executions were delivered"
            " as a batch query says: nothing missing, nothing twice[/]"
        )


def _figures(played: Played) -> Table:
    table = Table(box=None, show_header=False)
    last = played.samples[-1] if played.samples else Sample(0, 0, 0, 0, 0, 0)
    fe = max((sample.fe for sample in played.samples), default=0)
    be = max((sample.be for sample in played.samples), default=0)
    worst = max(_loaded(played.samples), key=lambda sample: sample.cov, default=last)
    delays = sorted(delay for told in played.told for delay in told.delays_s)
    quarantined = sum(d.rows for d in played.datasets if d.name.endswith("_quarantine"))
    rows = {
        "published": f"{played.reports:,} reports, {played.locations:,} places",
        "in quarantine": f"{quarantined:,}",
        "rows delivered": f"{played.deliveries:,}",
        "subscriptions": f"{fe:,} FE, {be:,} BE ({fe / be if be else 0:.1f} share one)",
        "delay": f"{_at(delays, 0.5):.1f} s p50, {_at(delays, 0.99):.1f} s p99, from the execution",
        "cov of the loads": f"{worst.cov:.2f} at worst, {last.cov:.2f} at the end",
        "maximum load": f"{worst.maximum_load:,.0f} bytes/s then, {last.maximum_load:,.0f} at the"
        f" end (mean {last.mean_load:,.0f})",
        "plans, moves": f"{played.plans} plans; "
        + (", ".join(f"{count} {what}" for what, count in played.moves.items()) or "no moves"),
    }
    for name, text in rows.items():
        table.add_row(name, text)
    return table


def _loaded(samples: Sequence[Sample]) -> list[Sample]:
    """Those with a load worth speaking of: at first a single subscription is all imbalance."""
    most = max((sample.mean_load for sample in samples), default=0.0)
    return [sample for sample in samples if sample.mean_load > most / 4]


def _at(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def _brokers(played: Played) -> Table:
    table = Table("broker", box=None)
    for name in ("subscribers", "BE", "load", "bytes in/s", "bytes out/s"):
        table.add_column(name, justify="right")
    for broker in played.brokers:
        table.add_row(
            broker.broker,
            str(broker.subscribers),
            str(broker.be_subscriptions),
            f"{broker.load:,.0f}",
            f"{broker.bytes_in_per_s:,.0f}",
            f"{broker.bytes_out_per_s:,.0f}",
        )
    return table


def _channels(played: Played) -> Table:
    table = Table("channel", "every", box=None)
    for name in ("BE", "executions", "rows of the last", "took"):
        table.add_column(name, justify="right")
    for channel in played.channels:
        last = channel.last[0] if channel.last else None
        cells = ("0", "", "") if last is None else (
            str(last.execution), f"{last.rows:,}", f"{last.took_s or 0:.2f} s"
        )  # fmt: skip
        table.add_row(channel.name, f"{channel.every_s:g} s", str(channel.subscriptions), *cells)
    return table
