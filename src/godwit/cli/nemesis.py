"""The command that lets things fail in live networks.

The test kit is imported when it is needed: every start of a broker would wait for it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer
from rich.console import Console
from rich.progress import Progress

from godwit.errors import UsageError

if TYPE_CHECKING:
    from godwit.testing.nemesis.fault_kinds import FaultKind
    from godwit.testing.nemesis.nemesis_run import NemesisResult

STORY_LINES = 60
TREE, CLUSTERS = "tree", "clusters"


class _Place(TypedDict):
    """What a run is made of: processes of brokers, those of services, or neither; its overlay."""

    services: bool
    in_memory: bool
    in_clusters: bool


def nemesis(
    seed: Annotated[int, typer.Argument(help="The seed of the run.")],
    until: Annotated[
        int | None, typer.Option(help="Run all seeds from SEED up to this one, exclusive.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1.0, max=3_600.0, help="How long things fail in each run.")
    ] = 30.0,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    kinds: Annotated[
        str,
        typer.Option(help="Kinds of faults, with commas: kill,cut; `--kinds ?` lists them."),
    ] = "",
    services: Annotated[
        bool,
        typer.Option(
            "--services",
            help="Let the data cluster, the coordinator and the disk fail instead.  Slow.",
        ),
    ] = False,
    in_memory: Annotated[
        bool,
        typer.Option(
            "--in-memory",
            help="Brokers are no processes and the clock is virtual: faster, and repeatable.",
        ),
    ] = False,
    overlay: Annotated[str, typer.Option(help="Overlay: tree or clusters.")] = TREE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the faults that are planned, by kind.")
    ] = False,
    stories: Annotated[
        Path | None, typer.Option(help="Folder for the whole stories of runs with violations.")
    ] = None,
) -> None:
    """Let brokers, links, clients and clocks fail in live networks, and check every delivery.

    Each seed is a run of 5 to 9 broker processes.  The exit code is 1 if a promise was broken.
    """
    wanted = _kinds(kinds, services=services)
    if overlay not in (TREE, CLUSTERS):
        raise UsageError(f"nemesis: not in the overlay {overlay!r}, only {TREE} and {CLUSTERS}")
    in_clusters = overlay == CLUSTERS
    seeds = range(seed, seed + 1 if until is None else until)
    if dry_run:
        _count(seeds, seconds, wanted, services=services, in_clusters=in_clusters)
    else:
        if in_memory and services:
            raise UsageError("services are processes: leave --in-memory or --services out")
        if in_clusters and services:
            raise UsageError("services run beside a tree: leave --overlay or --services out")
        place = _Place(services=services, in_memory=in_memory, in_clusters=in_clusters)
        _run(seeds, seconds, wanted, place, jobs=jobs, stories=stories)


def _run(
    seeds: range,
    seconds: float,
    kinds: tuple[FaultKind, ...],
    place: _Place,
    *,
    jobs: int,
    stories: Path | None,
) -> None:
    from godwit.testing.nemesis.clocks import MISSING, library  # noqa: PLC0415
    from godwit.testing.nemesis.fault_kinds import FaultKind  # noqa: PLC0415
    from godwit.testing.nemesis.seeds import replay_command, run_seeds  # noqa: PLC0415

    is_live = not place["services"] and not place["in_memory"]
    if FaultKind.CLOCK in kinds and is_live and library() is None:
        typer.echo(MISSING, err=True)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("live networks", total=len(seeds))

        def on_result(result: NemesisResult) -> None:
            progress.advance(task)
            typer.echo(_line(result))
            if not result.is_flawless:
                command = replay_command(result.seed, seconds=seconds, kinds=kinds, **place)
                _tell(result, command, stories)

        running = run_seeds(
            seeds, seconds=seconds, kinds=kinds, jobs=jobs, on_result=on_result, **place
        )
        summary = asyncio.run(running)
    typer.echo(str(summary))
    if summary.flawed:
        raise typer.Exit(code=1)


def _count(
    seeds: range,
    seconds: float,
    kinds: tuple[FaultKind, ...],
    *,
    services: bool,
    in_clusters: bool,
) -> None:
    from godwit.testing.nemesis.nemesis_plan import planned_faults  # noqa: PLC0415

    if services:
        raise UsageError(
            "--dry-run counts faults of brokers, links and clients; services fail until the time is"
            " over, so their faults are counted when they have happened: leave one option out"
        )
    planned = planned_faults(seeds, seconds=seconds, kinds=kinds, in_clusters=in_clusters)
    for kind in kinds:
        typer.echo(f"{kind.value} {planned[kind]}")


def _kinds(names: str, *, services: bool) -> tuple[FaultKind, ...]:
    from godwit.testing.nemesis.fault_kinds import NETWORK_KINDS, SERVICE_KINDS  # noqa: PLC0415

    known = {kind.value: kind for kind in (SERVICE_KINDS if services else NETWORK_KINDS)}
    if not names:
        return tuple(known.values())
    try:
        return tuple(known[name.strip()] for name in names.split(","))
    except KeyError as error:
        raise UsageError(f"{error} is not a kind of fault here: {', '.join(known)}") from None


def _line(result: NemesisResult) -> str:
    return (
        f"seed {result.seed}: {result.brokers} brokers, {sum(result.faults.values())} faults,"
        f" {result.publications} publications, {result.deliveries} deliveries,"
        f" {result.gaps} gaps told, {result.told} lost there, quiet after {result.settle_s:.1f} s,"
        f" {len(result.violations)} violations"
    )


def _tell(result: NemesisResult, command: str, stories: Path | None) -> None:
    typer.echo(f"run it again: {command}")
    for violation in result.violations[:10]:
        typer.echo(f"  WRONG: {violation}")
    if stories is not None:
        from godwit.testing.nemesis.seeds import keep_story  # noqa: PLC0415

        stories.mkdir(parents=True, exist_ok=True)
        typer.echo(f"  the story is in {keep_story(stories, result)}")
        return
    for line in result.story[:STORY_LINES]:
        typer.echo(f"  {line}")
