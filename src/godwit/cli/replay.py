"""The command that repeats random runs of the tests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Annotated, Protocol

import typer
from rich.console import Console
from rich.progress import Progress

from godwit.errors import UsageError
from godwit.overlay import OVERLAYS, Overlay
from godwit.overlay import overlay as overlay_named
from godwit.overlay.tree.tree_routing import TreeRouting


class RandomScenario(Protocol):
    @property
    def is_flawless(self) -> bool: ...


def _scenario(
    strategy: Overlay, *, moves: bool, membership: bool, faults: bool
) -> Callable[[int], RandomScenario]:
    if moves + membership + faults > 1:
        raise UsageError("use one of --moves, --membership and --faults")
    # The test kit is slow to import: every start of a broker would wait for it.
    from godwit.testing import (  # noqa: PLC0415
        random_membership,
        random_moves,
        random_run,
        storm,
    )

    if membership:
        return lambda seed: random_membership(seed, strategy)
    if not faults:
        run = random_moves if moves else random_run
        return lambda seed: run(seed, strategy)
    if strategy is not TreeRouting:
        raise UsageError("--faults works with --overlay tree only")
    logging.getLogger("godwit").setLevel(logging.ERROR)  # Failures are part of the run.
    return storm


def replay(
    seed: Annotated[int, typer.Argument(help="Seed, as printed by a failed test.")],
    until: Annotated[
        int | None, typer.Option(help="Run all seeds from SEED up to this one, exclusive.")
    ] = None,
    moves: Annotated[
        bool, typer.Option("--moves", help="Repeat a run in which clients move between brokers.")
    ] = False,
    membership: Annotated[
        bool,
        typer.Option("--membership", help="Repeat a run in which leaf brokers join and leave."),
    ] = False,
    faults: Annotated[
        bool,
        typer.Option("--faults", help="Repeat a run in which brokers and connections fail."),
    ] = False,
    overlay: Annotated[str, typer.Option(help=f"Overlay: {', '.join(OVERLAYS)}.")] = "tree",
) -> None:
    """Repeat random runs of the tests and show violations.  The exit code is 1 if there are any."""
    strategy = overlay_named(overlay)
    scenario = _scenario(strategy, moves=moves, membership=membership, faults=faults)
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
