"""Commands for the coordinator: run it, and show its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec
import typer
import uvloop
from rich.table import Table

from godwit.api import coordinator_api
from godwit.cli.dashboard_serving import DashboardAt, dashboard_at
from godwit.cli.options import Config, Json, Leash, LogForm, LogLevel, Secret
from godwit.cli.signals import stop_event
from godwit.cli.terminal import console
from godwit.config import changed
from godwit.http.operations import Nothing
from godwit.runtime.logs import configure
from godwit.runtime.processes import ANSWERS
from godwit.web.directory import Directory

if TYPE_CHECKING:
    from godwit.coordinator.settings import CoordinatorSettings

Listen: TypeAlias = Annotated[
    str | None, typer.Option(help="Address to serve on, HOST:PORT.", show_default="127.0.0.1:7500")
]
State: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Folder for state that survives restarts.", show_default="./coordinator"),
]
Placement: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Where new clients are placed: nearest, 'round robin', random or 'least loaded'."
    ),
]
ForwardingStrategy: TypeAlias = Annotated[
    str | None, typer.Option(help="Where clients of an overloaded broker move: ldm or sdm.")
]
Alpha: TypeAlias = Annotated[
    float | None, typer.Option(help="Migrate if the cov of the loads is above this ...")
]
Beta: TypeAlias = Annotated[
    float | None, typer.Option(help="... and the mean load above this, in bytes per second.")
]
Gamma: TypeAlias = Annotated[
    float | None, typer.Option(help="Shuffle if the cov of the loads is above this ...")
]
Theta: TypeAlias = Annotated[
    float | None, typer.Option(help="... and the mean load above this.", show_default="beta")
]
ReportS: TypeAlias = Annotated[
    float | None, typer.Option(help="Interval of the brokers' reports, in seconds.")
]
HoldS: TypeAlias = Annotated[
    float | None, typer.Option(help="Seconds for which a client that has moved is not moved again.")
]
MovesPerS: TypeAlias = Annotated[
    float | None, typer.Option(help="Clients that are asked to move per second, at most.")
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Plan and show moves, but move no client.")
]


def coordinator(
    listen: Listen = None,
    state: State = None,
    config: Config = None,
    placement: Placement = None,
    strategy: ForwardingStrategy = None,
    alpha: Alpha = None,
    beta: Beta = None,
    gamma: Gamma = None,
    theta: Theta = None,
    report_s: ReportS = None,
    hold_s: HoldS = None,
    moves_per_s: MovesPerS = None,
    dry_run: DryRun = False,
    dashboard: DashboardAt = None,
    secret: Secret = "",
    log_level: LogLevel = "info",
    log_format: LogForm = "text",
    leash: Leash = False,
) -> None:
    """Run the coordinator, until SIGTERM or Ctrl-C.

    It assigns clients to brokers, and keeps the brokers balanced.
    """
    # Slow, because of NumPy; other commands do not need it.
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
        dashboard=dashboard,
        secret=secret or None,
    )
    uvloop.run(_serve(settings, leash=leash))


async def _serve(settings: CoordinatorSettings, *, leash: bool) -> None:
    from godwit.coordinator.server import CoordinatorServer  # noqa: PLC0415

    stopped = stop_event(leash=leash)
    async with CoordinatorServer(settings) as server:

        def brokers() -> dict[str, str]:
            known = server.core.registry.brokers
            return {name: each.http for name, each in known.items() if each.http is not None}

        directory = Directory(
            brokers=brokers, coordinator=lambda: server.url, secret=settings.secret
        )
        async with dashboard_at(settings.dashboard, directory) as url:
            if url is not None:
                typer.echo(f"dashboard   {url}")
            typer.echo(f"coordinator {ANSWERS} {server.url}")
            await stopped.wait()


def brokers(
    url: Annotated[str, typer.Argument(help="Address of the coordinator, http://HOST:PORT.")],
    moves: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of moves to show, at most.")
    ] = 10,
    json: Json = False,
) -> None:
    """Show the brokers of a coordinator and their loads, the last plan, and the last moves."""
    seen, plan, moved = uvloop.run(_fetch(url, moves))
    if json:
        fields = {
            "brokers": seen.brokers,
            "balance": seen.balance,
            "plan": plan,
            "moves": moved.moves,
        }
        typer.echo(msgspec.json.encode(fields))
        return
    terminal = console()
    terminal.print(_broker_table(seen))
    balance = seen.balance
    terminal.print(
        f"cov {balance.cov:.3f}, mean load {balance.mean_load:,.0f}, maximum "
        f"{balance.maximum_load:,.0f} bytes/s; {balance.subscribers} subscribers, "
        f"{balance.fe_subscriptions} FE and {balance.be_subscriptions} BE subscriptions "
        f"({balance.sharing:.1f} shared)"
    )
    waits = f" (next when {', '.join(plan.waits_for)} reported)" if plan.waits_for else ""
    terminal.print(f"last look: {plan.says}{waits}")
    if plan.plan is not None:
        made = plan.plan
        dry = ", a dry run" if made.is_dry_run else ""
        counts = ", ".join(f"{count} {outcome}" for outcome, count in plan.outcomes.items())
        terminal.print(
            f"last plan: {made.number} ({made.stage}{dry}): {made.why}; "
            f"cov {made.cov_before:.3f} to {made.cov_after:.3f}; {counts}"
        )
    if moved.moves:
        terminal.print(_move_table(moved))


async def _fetch(
    url: str, moves: int
) -> tuple[coordinator_api.Brokers, coordinator_api.LastPlan, coordinator_api.Moves]:
    from godwit.http.http_client import HttpClient  # noqa: PLC0415

    async with HttpClient(url) as coordinator:
        return (
            await coordinator.call(coordinator_api.BROKERS, Nothing()),
            await coordinator.call(coordinator_api.PLAN, Nothing()),
            await coordinator.call(coordinator_api.MOVES, coordinator_api.WhichMoves(limit=moves)),
        )


def _broker_table(seen: coordinator_api.Brokers) -> Table:
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


def _move_table(moved: coordinator_api.Moves) -> Table:
    table = Table("move", "client", "from", "to", "outcome", "why", box=None)
    for move in moved.moves:
        outcome = f"{move.outcome.value}: {move.because}" if move.because else move.outcome.value
        table.add_row(str(move.number), move.client, move.source, move.target, outcome, move.why)
    return table
