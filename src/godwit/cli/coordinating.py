"""Commands for the coordinator: run it, and look at what it sees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from godwit.cli.running import Level, Secret, told_to_stop
from godwit.config import changed
from godwit.network.logs import LogFormat, configure
from godwit.network.processes import ANSWERS
from godwit.rest import bcs
from godwit.rest.operations import Nothing

if TYPE_CHECKING:
    from godwit.coordinator.settings import CoordinatorSettings

Listen = Annotated[str | None, typer.Option(help="HOST:PORT; 127.0.0.1:7500 unless it is set.")]
State = Annotated[
    str | None,
    typer.Option(help="A folder for what outlives the process; ./coordinator unless it is set."),
]
Config = Annotated[Path | None, typer.Option(help="A file with settings; options go before it.")]
Placement = Annotated[
    str | None,
    typer.Option(help="Where newcomers go: nearest, 'round robin', random, 'least loaded'."),
]
Strategy = Annotated[
    str | None, typer.Option(help="Where those go who leave a loaded broker: ldm or sdm.")
]
Alpha = Annotated[float | None, typer.Option(help="Migrate above this cov of the loads ...")]
Beta = Annotated[float | None, typer.Option(help="... and this mean load, in bytes per second.")]
Gamma = Annotated[float | None, typer.Option(help="Shuffle above this cov of the loads ...")]
Theta = Annotated[float | None, typer.Option(help="... and this mean load; as beta without.")]
ReportS = Annotated[float | None, typer.Option(help="How often brokers report, in seconds.")]
HoldS = Annotated[float | None, typer.Option(help="Who has moved is left alone for so long.")]
MovesPerS = Annotated[float | None, typer.Option(help="So many are asked to move at most.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Plan and show, move nobody.")]


def coordinator(
    listen: Listen = None,
    state: State = None,
    config: Config = None,
    placement: Placement = None,
    strategy: Strategy = None,
    alpha: Alpha = None,
    beta: Beta = None,
    gamma: Gamma = None,
    theta: Theta = None,
    report_s: ReportS = None,
    hold_s: HoldS = None,
    moves_per_s: MovesPerS = None,
    dry_run: DryRun = False,
    secret: Secret = "",
    log_level: Level = "info",
    log_format: Annotated[LogFormat, typer.Option(help="text or json.")] = "text",
    leash: Annotated[bool, typer.Option(help="Stop when standard input is closed.")] = False,
) -> None:
    """Run the coordinator: it tells clients which broker to use, and keeps brokers balanced."""
    # NumPy and all: no other command should have to wait for that.
    from godwit.coordinator.settings import (  # noqa: PLC0415
        CoordinatorSettings,
        load_settings,
    )

    configure(log_level, log_format)
    settings = changed(
        CoordinatorSettings() if config is None else load_settings(config),
        listen=listen,
        state=state,
        placement=placement,
        strategy=strategy,
        alpha=alpha,
        beta=beta,
        gamma=gamma,
        theta=theta,
        report_s=report_s,
        hold_s=hold_s,
        moves_per_s=moves_per_s,
        dry_run=dry_run or None,
        secret=secret or None,
    )
    uvloop.run(_serve(settings, leash=leash))


async def _serve(settings: CoordinatorSettings, *, leash: bool) -> None:
    from godwit.coordinator.server import CoordinatorServer  # noqa: PLC0415

    stopped = told_to_stop(leash=leash)
    async with CoordinatorServer(settings) as server:
        typer.echo(f"coordinator {ANSWERS} {server.url}")
        await stopped.wait()


def brokers(
    url: Annotated[str, typer.Argument(help="Of a coordinator: http://HOST:PORT.")],
    moves: Annotated[int, typer.Option(min=1, max=10_000, help="Show so many at most.")] = 10,
    json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show what a coordinator knows: brokers and their loads, the last plan, the last moves."""
    seen, plan, moved = uvloop.run(_look(url, moves))
    if json:
        fields = {
            "brokers": seen.brokers,
            "balance": seen.balance,
            "plan": plan,
            "moves": moved.moves,
        }
        typer.echo(msgspec.json.encode(fields))
        return
    console = Console()
    console.print(_broker_table(seen))
    balance = seen.balance
    console.print(
        f"cov {balance.cov:.3f}, mean load {balance.mean_load:,.0f}, maximum "
        f"{balance.maximum_load:,.0f} bytes/s; {balance.subscribers} subscribers, "
        f"{balance.fe_subscriptions} FE and {balance.be_subscriptions} BE subscriptions "
        f"({balance.sharing:.1f} shared)"
    )
    waits = f" (next when {', '.join(plan.waits_for)} reported)" if plan.waits_for else ""
    console.print(f"last look: {plan.says}{waits}")
    if plan.plan is not None:
        made = plan.plan
        dry = ", a dry run" if made.is_dry_run else ""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in plan.outcomes.items())
        console.print(
            f"last plan: {made.number} ({made.stage}{dry}): {made.why}; "
            f"cov {made.cov_before:.3f} to {made.cov_after:.3f}; {counts}"
        )
    if moved.moves:
        console.print(_move_table(moved))


async def _look(url: str, moves: int) -> tuple[bcs.Brokers, bcs.LastPlan, bcs.Moves]:
    from godwit.rest.calling import Caller  # noqa: PLC0415

    async with Caller(url) as coordinator:
        return (
            await coordinator.call(bcs.BROKERS, Nothing()),
            await coordinator.call(bcs.PLAN, Nothing()),
            await coordinator.call(bcs.MOVES, bcs.WhichMoves(limit=moves)),
        )


def _broker_table(seen: bcs.Brokers) -> Table:
    table = Table("broker", box=None)
    table.add_column("address", no_wrap=True)
    table.add_column("state")
    for name in ("load", "in", "out", "subscribers", "BE"):
        table.add_column(name, justify="right")
    for broker in seen.brokers:
        age = "no report" if broker.report_age_s is None else f"{broker.report_age_s:.0f} s ago"
        table.add_row(
            broker.broker,
            broker.url,
            age if broker.is_live else f"silent, {age}",
            f"{broker.load:,.0f}",
            f"{broker.bytes_in_per_s:,.0f}",
            f"{broker.bytes_out_per_s:,.0f}",
            str(broker.subscribers),
            str(broker.be_subscriptions),
        )
    return table


def _move_table(moved: bcs.Moves) -> Table:
    table = Table("move", "client", "from", "to", "outcome", "why", box=None)
    for move in moved.moves:
        outcome = f"{move.outcome.value}: {move.because}" if move.because else move.outcome.value
        table.add_row(str(move.number), move.client, move.source, move.target, outcome, move.why)
    return table
