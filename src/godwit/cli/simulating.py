"""Commands that play scenarios: live, simulated, and again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Protocol

import typer
import uvloop
from rich.console import Console
from rich.progress import Progress

from godwit.demo import DemoResult, play_live, play_simulated, render
from godwit.errors import UsageError
from godwit.network.settings import load_network
from godwit.overlay import OVERLAYS, Overlay
from godwit.overlay import overlay as overlay_named
from godwit.overlay.topology import balanced_tree
from godwit.overlay.tree import TreeRouting
from godwit.simulation.random_moves import random_moves
from godwit.simulation.random_runs import random_run
from godwit.simulation.stock_scenario import StockScenario

Seed = Annotated[int, typer.Option(help="Another seed, another market.")]


demo = typer.Typer(
    help="Play a scenario through processes on this machine, and check every delivery."
)


@demo.callback(invoke_without_command=True)
def stocks(
    context: typer.Context,
    seed: Seed = 1,
    brokers: Annotated[int, typer.Option(min=1, max=63, help="Processes to start.")] = 7,
    seconds: Annotated[float, typer.Option(min=2, max=3600, help="Of publishing.")] = 20.0,
) -> None:
    """Stock quotes through broker processes, unless another scenario is named."""
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
    users: Annotated[int, typer.Option(min=1, max=2_000, help="Who are told.")] = 400,
    brokers: Annotated[int, typer.Option(min=2, max=20, help="Processes to start.")] = 5,
    seconds: Annotated[
        float, typer.Option(min=5, max=3600, help="After everybody has subscribed.")
    ] = 90.0,
    pace: Annotated[
        float, typer.Option(min=1, max=10, help="So many times faster than in the paper.")
    ] = 5.0,
    placement: Annotated[
        str, typer.Option(help="Where newcomers go: nearest, 'round robin', random.")
    ] = "nearest",
    strategy: Annotated[str, typer.Option(help="Who is moved where: ldm or sdm.")] = "sdm",
    balance: Annotated[bool, typer.Option(help="Move subscribers, or leave them.")] = True,
    roads: Annotated[
        Path | None, typer.Option(help="A road map (WKT); streets at right angles without one.")
    ] = None,
) -> None:
    """People told of emergencies by channels on Spark: coordinator, brokers, data cluster."""
    from godwit.emergencies.scenario import EmergencyScenario  # noqa: PLC0415  Needs an extra.
    from godwit.emergencies.showing import demonstrate  # noqa: PLC0415
    from godwit.emergencies.showing import render as render_emergencies  # noqa: PLC0415

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
        Path | None, typer.Argument(help="A network file; a tree of 31 brokers without.")
    ] = None,
    seed: Seed = 1,
    minutes: Annotated[float, typer.Option(min=1.5, max=600, help="Simulated time.")] = 4.0,
) -> None:
    """Play stock quotes through a simulated network in virtual time, and check every delivery."""
    network = None if file is None else load_network(file)
    shape = balanced_tree(31, fanout=2) if network is None else network.topology
    scenario = StockScenario(
        publishers=10,
        subscribers_per_publisher=40,
        brokers_with_subscribers=12,
        duration_s=minutes * 60.0,
    )
    console = Console()
    policy = None if network is None else network.placement
    _show(console, play_simulated(console, shape, scenario, seed=seed, policy=policy))


def _show(console: Console, result: DemoResult) -> None:
    for table in render(result):
        console.print(table)
    if not result.oracle.is_satisfied:
        raise typer.Exit(code=1)


class RandomScenario(Protocol):
    @property
    def is_flawless(self) -> bool: ...


def _scenario(strategy: Overlay, *, moves: bool, faults: bool) -> Callable[[int], RandomScenario]:
    if not faults:
        run = random_moves if moves else random_run
        return lambda seed: run(seed, strategy)
    from godwit.storms.storm import storm  # noqa: PLC0415  Needs the network, which few do.

    if strategy is not TreeRouting:
        raise UsageError("storms are for trees")
    logging.getLogger("godwit").setLevel(logging.ERROR)  # What fails is meant to.
    return storm


def replay(
    seed: Annotated[int, typer.Argument(help="As printed by a failed test.")],
    until: Annotated[
        int | None, typer.Option(help="Run all seeds from SEED up to, not including, this one.")
    ] = None,
    moves: Annotated[
        bool, typer.Option("--moves", help="The runs in which clients move between brokers.")
    ] = False,
    faults: Annotated[
        bool,
        typer.Option("--faults", help="The runs in which brokers and connections fail meanwhile."),
    ] = False,
    overlay: Annotated[str, typer.Option(help=f"One of: {', '.join(OVERLAYS)}.")] = "tree",
) -> None:
    """Run random overlays with random clients again, and say what went wrong."""
    strategy = overlay_named(overlay)
    scenario = _scenario(strategy, moves=moves, faults=faults)
    seeds = range(seed, seed + 1 if until is None else until)
    flawed = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for each in progress.track(seeds, description="random overlays"):
            run = scenario(each)
            if not run.is_flawless:
                flawed.append(each)
            if len(seeds) == 1 or not run.is_flawless:
                typer.echo(str(run))
    if len(seeds) > 1:
        typer.echo(f"{len(seeds)} runs, {len(flawed)} with violations")
    if flawed:
        raise typer.Exit(code=1)
