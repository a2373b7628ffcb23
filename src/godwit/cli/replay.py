"""The command that repeats random runs of the tests."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Protocol

import typer
from rich.console import Console
from rich.progress import Progress

from godwit.errors import UsageError
from godwit.overlay import SIMULATED_OVERLAYS, Overlay
from godwit.overlay import overlay as overlay_named
from godwit.testing.overlay_shapes import ANY, check_is_live, check_is_tree, has_clusters, is_mesh
from godwit.testing.random_balancing import random_balancing
from godwit.testing.random_membership import random_membership
from godwit.testing.random_moves import random_moves
from godwit.testing.random_reshaping import (
    random_delta_moves,
    random_overlay_changes,
    random_reshaping,
)
from godwit.testing.random_runs import random_run
from godwit.testing.random_steering import random_steering
from godwit.testing.storms.balancing_storm import balancing_storm
from godwit.testing.storms.cluster_storm import cluster_storm
from godwit.testing.storms.kill_storm import kill_storm
from godwit.testing.storms.overlay_storm import delta_move_storm, overlay_storm
from godwit.testing.storms.plan_storm import plan_storm
from godwit.testing.storms.reshaping_storm import reshaping_storm
from godwit.testing.storms.storm import storm

#: As in the Makefile.
HASH_SEED = "0"
_NAMES = ", ".join(SIMULATED_OVERLAYS)


class RandomScenario(Protocol):
    @property
    def is_flawless(self) -> bool: ...


def _scenario(
    overlay: str,
    *,
    moves: bool,
    membership: bool,
    balancing: bool,
    reshaping: bool,
    plans: bool,
    faults: bool,
) -> Callable[[int], RandomScenario]:
    if overlay == ANY and reshaping and not moves + membership + balancing + plans:
        return _changing(faults=faults)
    strategy = overlay_named(overlay, SIMULATED_OVERLAYS)
    if plans and not moves + membership + balancing + reshaping:
        check_is_tree(strategy, "--plans")
        logging.getLogger("godwit").setLevel(logging.ERROR)  # Failures are part of the run.
        return kill_storm if faults else plan_storm
    if reshaping and not moves + membership + balancing:
        return _reshaping(strategy, faults=faults)
    if moves + membership + balancing + reshaping + plans + faults > 1:
        raise UsageError("use one of --moves, --membership, --balancing, --plans and --faults")
    if membership:
        return lambda seed: random_membership(seed, strategy)
    if not faults and not balancing:
        run = random_moves if moves else random_run
        return lambda seed: run(seed, strategy)
    check_is_live(strategy, "--balancing and --faults")
    if balancing and has_clusters(strategy):
        return random_steering
    logging.getLogger("godwit").setLevel(logging.ERROR)  # Failures are part of the run.
    if faults:
        if has_clusters(strategy):
            return cluster_storm
        return lambda seed: storm(seed, has_soft_links=is_mesh(strategy))
    # Every other run has brokers that crash.
    return lambda seed: balancing_storm(seed) if seed % 2 else random_balancing(seed)


def _every_other(
    live: Callable[[int], RandomScenario], simulated: Callable[[int], RandomScenario]
) -> Callable[[int], RandomScenario]:
    """Every other run has live brokers, which crash."""
    logging.getLogger("godwit").setLevel(logging.ERROR)  # Failures are part of the run.
    return lambda seed: live(seed) if seed % 2 else simulated(seed)


def _changing(*, faults: bool) -> Callable[[int], RandomScenario]:
    if not faults:
        return random_overlay_changes
    return _every_other(overlay_storm, partial(random_overlay_changes, faults=True))


def _reshaping(strategy: Overlay, *, faults: bool) -> Callable[[int], RandomScenario]:
    check_is_tree(strategy, "--reshaping")
    if is_mesh(strategy) and not faults:
        return random_delta_moves
    if is_mesh(strategy):
        return _every_other(delta_move_storm, partial(random_delta_moves, faults=True))
    if not faults:
        return lambda seed: random_reshaping(seed, strategy)
    return _every_other(reshaping_storm, lambda seed: random_reshaping(seed, strategy, faults=True))


def _fix_hash_seed() -> None:
    """Start again with the hash seed of `make test`: the order of sets in live brokers."""
    if os.environ.get("PYTHONHASHSEED", "random") == "random":
        command = [sys.executable, "-m", "godwit", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": HASH_SEED})  # noqa: S606


def replay(
    seed: Annotated[int, typer.Argument(help="Seed, as printed by a failed test.")],
    until: Annotated[
        int | None, typer.Option(help="Run all seeds from SEED up to this one, exclusive.")
    ] = None,
    moves: Annotated[
        bool, typer.Option("--moves", help="Repeat a run in which clients move between brokers.")
    ] = False,
    membership: Annotated[
        bool, typer.Option("--membership", help="Repeat a run in which brokers join and leave.")
    ] = False,
    balancing: Annotated[
        bool,
        typer.Option("--balancing", help="Repeat a run in which brokers balance their load."),
    ] = False,
    faults: Annotated[
        bool,
        typer.Option("--faults", help="Repeat a run in which brokers and connections fail."),
    ] = False,
    reshaping: Annotated[
        bool,
        typer.Option(
            "--reshaping",
            help="Repeat a run in which the network changes its shape; --faults may be added.",
        ),
    ] = False,
    plans: Annotated[
        bool,
        typer.Option(
            "--plans",
            help="Repeat a run in which plans meet a failure; with --faults always a kill.",
        ),
    ] = False,
    overlay: Annotated[
        str, typer.Option(help=f"Overlay: {_NAMES}; `{ANY}` with --reshaping.")
    ] = "tree",
) -> None:
    """Repeat random runs of the tests and show violations.  The exit code is 1 if there are any."""
    _fix_hash_seed()
    scenario = _scenario(
        overlay,
        moves=moves,
        membership=membership,
        balancing=balancing,
        reshaping=reshaping,
        plans=plans,
        faults=faults,
    )
    _run_all(scenario, range(seed, seed + 1 if until is None else until))


def _run_all(scenario: Callable[[int], RandomScenario], seeds: range) -> None:
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
