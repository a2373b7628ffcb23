"""Commands that play scenarios, live or simulated, and check every delivery."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
import uvloop
from rich.console import Console

from godwit.cli.extras import needs
from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.demos.stocks.stocks_demo import DemoResult, play_live, play_simulated, render
from godwit.errors import UsageError
from godwit.overlay import overlay as overlay_named
from godwit.overlay.topology import balanced_tree
from godwit.runtime.settings import load_network

Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of the scenario.")]

demo = typer.Typer(
    help="Play stock quotes, or another scenario, through processes; check every delivery."
)


@demo.callback(invoke_without_command=True)
def stocks(
    context: typer.Context,
    seed: Seed = 1,
    brokers: Annotated[int, typer.Option(min=1, max=63, help="Number of broker processes.")] = 7,
    seconds: Annotated[float, typer.Option(min=2, max=3600, help="How long to publish.")] = 20.0,
) -> None:
    """Stock quotes through broker processes, unless a command names another scenario."""
    if context.invoked_subcommand is not None:
        return
    scenario = StockScenario(
        publishers=10,
        subscribers_per_publisher=20,
        brokers_with_subscribers=4,
        publications_per_min=(300.0, 3000.0),
        joining_s=3.0,
        duration_s=3.0 + seconds,
    )
    console = Console()
    _show(console, play_live(console, balanced_tree(brokers, fanout=2), scenario, seed=seed))


@demo.command()
def emergencies(
    seed: Seed = 1,
    users: Annotated[int, typer.Option(min=1, max=2_000, help="Number of subscribers.")] = 400,
    brokers: Annotated[int, typer.Option(min=2, max=20, help="Number of broker processes.")] = 5,
    seconds: Annotated[
        float,
        typer.Option(min=5, max=3600, help="How long to play after all users have subscribed."),
    ] = 90.0,
    pace: Annotated[float, typer.Option(min=1, max=10, help="Speed relative to the paper.")] = 5.0,
    placement: Annotated[
        str, typer.Option(help="Where new users are placed: nearest, 'round robin' or random.")
    ] = "nearest",
    strategy: Annotated[
        str, typer.Option(help="Where users of an overloaded broker move: ldm or sdm.")
    ] = "sdm",
    balance: Annotated[bool, typer.Option(help="Whether to move users between brokers.")] = True,
    roads: Annotated[
        Path | None, typer.Option(help="Road map (WKT).", show_default="a grid of streets")
    ] = None,
) -> None:
    """Notify users of emergencies near them: channels on Spark, brokers and a coordinator."""
    with needs("datacluster", "the demonstration"):
        import godwit.datacluster.server  # noqa: F401, PLC0415  Used by a process of it.
        from godwit.demos.emergencies.emergencies_demo import demonstrate  # noqa: PLC0415
        from godwit.demos.emergencies.emergencies_demo import (  # noqa: PLC0415
            render as render_emergencies,
        )
        from godwit.demos.emergencies.scenario import EmergencyScenario  # noqa: PLC0415

    scenario = EmergencyScenario(
        users=users,
        brokers=brokers,
        seconds=seconds,
        pace=pace,
        placement=placement,
        strategy=strategy,
        is_balanced=balance,
        seed=seed,
        roads=roads,
    )
    console = Console()
    played, verdict = uvloop.run(demonstrate(console, scenario))
    render_emergencies(console, played, verdict)
    if verdict.faults:
        raise typer.Exit(code=1)


def simulate(
    file: Annotated[
        Path | None, typer.Argument(help="Network file.", show_default="a tree of 31 brokers")
    ] = None,
    seed: Seed = 1,
    minutes: Annotated[float, typer.Option(min=1.5, max=600, help="Simulated minutes.")] = 4.0,
) -> None:
    """Play stock quotes through a simulated network in virtual time, and check every delivery."""
    network = None if file is None else load_network(file)
    if network is not None and network.balancing is not None:
        raise UsageError(
            f"{file} has [balancing], and the publishers of this scenario are at edge brokers, too,"
            " which refuse them; `godwit lab run balance-local` simulates load balancing"
        )
    shape = balanced_tree(31, fanout=2) if network is None else network.topology
    scenario = StockScenario(
        publishers=10,
        subscribers_per_publisher=40,
        brokers_with_subscribers=12,
        duration_s=minutes * 60.0,
    )
    console = Console()
    result = play_simulated(
        console,
        shape,
        scenario,
        seed=seed,
        policy=None if network is None else network.placement,
        overlay=overlay_named("tree" if network is None else network.overlay),
        settings={} if network is None else network.overlay_settings,
    )
    _show(console, result)


def _show(console: Console, result: DemoResult) -> None:
    for table in render(result):
        console.print(table)
    if not result.oracle.is_satisfied:
        raise typer.Exit(code=1)
