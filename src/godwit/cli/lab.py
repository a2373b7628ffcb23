"""Commands of the lab: list experiments, run one, write reports.

Spark and matplotlib come with the extra `lab`, and are imported when a command needs them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from godwit.cli.extras import needs
from godwit.cli.options import Json
from godwit.cli.terminal import console
from godwit.errors import UsageError

if TYPE_CHECKING:
    from godwit.lab.declaration import Experiment
    from godwit.lab.runner import RunOptions

lab = typer.Typer(help="List and run experiments, and write reports.", no_args_is_help=True)

Jobs: TypeAlias = Annotated[
    int | None,
    typer.Option(min=1, help="Processes that execute runs.", show_default="one for each processor"),
]
Master: TypeAlias = Annotated[
    str, typer.Option(help="Spark master: local\\[*] or spark://HOST:PORT.")
]
Cache: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Folder for results.", show_default="$XDG_CACHE_HOME/godwit or ~/.cache/godwit"
    ),
]
KeepTraces: TypeAlias = Annotated[
    bool, typer.Option("--keep-traces", help="Keep the traces of runs in the cache.")
]
Scale: TypeAlias = Annotated[
    str, typer.Option(help="Size of the experiment: small or paper; some have medium.")
]


@lab.command("list")
def list_(json: Json = False) -> None:
    """Show all experiments."""
    experiments = _experiments()
    if json:
        typer.echo(msgspec.json.encode([_listed(each) for each in experiments.values()]))
        return
    table = Table(show_lines=True)
    for heading in ("experiment", "question", "runs", "claims"):
        table.add_column(heading)
    for each in experiments.values():
        runs = "\n".join(f"{name}: {scale.runs}" for name, scale in each.scales.items())
        table.add_row(each.name, each.question, runs, str(len(each.claims)))
    console().print(table)


def _listed(experiment: Experiment) -> dict[str, object]:
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "scales": {
            name: {"cases": len(scale.cases), "seeds": scale.seeds, "runs": scale.runs}
            for name, scale in experiment.scales.items()
        },
        "measures": {
            name: each.unit for name, each in experiment.measures.items() if each.is_listed
        },
        "claims": {claim.id: claim.statement for claim in experiment.claims},
    }


@lab.command()
def run(
    name: Annotated[
        str, typer.Argument(help="Name of an experiment, or a Python file with an EXPERIMENT.")
    ],
    scale: Scale = "small",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds.", show_default="as declared")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Run this seed only.")] = None,
    case: Annotated[
        list[str] | None, typer.Option(help="Run only cases with PARAMETER=VALUE; repeat for more.")
    ] = None,
    jobs: Jobs = None,
    master: Master = "local[*]",
    json: Json = False,
    keep_traces: KeepTraces = False,
    cache: Cache = None,
) -> None:
    """Run an experiment, measure it, and judge its claims.

    Runs that the cache has, of the same code, are not repeated.
    """
    experiment = _named(name)
    from godwit.lab.progress import Progress  # noqa: PLC0415
    from godwit.lab.runner import planned, run_experiment  # noqa: PLC0415
    from godwit.lab.summary import summarise  # noqa: PLC0415
    from godwit.lab.text_tables import rich_tables  # noqa: PLC0415

    if seed is not None and seeds is not None:
        raise UsageError("--seeds and --seed exclude each other; give one of them")
    only = _only(case or [])
    numbers = [seed] if seed is not None else range(1, seeds + 1) if seeds else None
    runs = planned(experiment, scale, seeds=numbers, only=only)
    progress = Progress(Console(stderr=True), experiment.name)
    results = run_experiment(
        experiment, scale, runs, _options(jobs, master, cache, keep_traces), progress
    )
    summary = summarise(experiment, scale, results, judged=not only)
    if json:
        typer.echo(summary.to_json())
        return
    terminal = Console()
    for table in rich_tables(summary, width=terminal.width):
        terminal.print(table)


@lab.command()
def report(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of experiments.", show_default="all")
    ] = None,
    scale: Scale = "paper",
    output: Annotated[Path, typer.Option(help="Folder for pages and figures.")] = Path(
        "docs/results"
    ),
    jobs: Jobs = None,
    master: Master = "local[*]",
    cache: Cache = None,
) -> None:
    """Write a page with figures for each experiment, and a summary of all claims.

    Runs that the cache does not have are executed first.
    """
    experiments = _experiments()
    with needs("lab", "a report"):
        import matplotlib as mpl  # noqa: F401, PLC0415  Used at the end of a long run.
    from godwit.lab.progress import Progress  # noqa: PLC0415
    from godwit.lab.report import write_index, write_page  # noqa: PLC0415
    from godwit.lab.runner import planned, run_experiment  # noqa: PLC0415

    options = _options(jobs, master, cache, keep_traces=False)
    for experiment in [_named(name) for name in names or experiments]:
        runs = planned(experiment, scale)
        progress = Progress(Console(stderr=True), experiment.name)
        results = run_experiment(experiment, scale, runs, options, progress)
        write_page(experiment, scale, results, output)
        typer.echo(f"{output / experiment.name}.md", err=True)
    write_index(list(experiments.values()), output)


def _experiments() -> dict[str, Experiment]:
    with needs("lab", "the lab"):
        from godwit.experiments import EXPERIMENTS  # noqa: PLC0415
    return dict(EXPERIMENTS)


def _named(name: str) -> Experiment:
    experiments = _experiments()
    if name.endswith(".py"):
        return _of_file(Path(name))
    if name not in experiments:
        raise UsageError(f"unknown experiment {name!r}; choose from {', '.join(experiments)}")
    return experiments[name]


def _of_file(path: Path) -> Experiment:
    """The experiment of a file, imported by name: the processes that execute runs do the same."""
    if not path.is_file():
        raise UsageError(f"cannot read {path}: no such file")
    sys.path.insert(0, str(path.parent.resolve()))
    experiment = getattr(import_module(path.stem), "EXPERIMENT", None)
    if experiment is None:
        raise UsageError(f"{path} does not define EXPERIMENT")
    return cast("Experiment", experiment)


def _only(cases: Sequence[str]) -> dict[str, str]:
    only = {}
    for text in cases:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--case {text}: write PARAMETER=VALUE")
        only[name] = value
    return only


def _options(jobs: int | None, master: str, cache: Path | None, keep_traces: bool) -> RunOptions:
    from godwit.lab.cache import default_folder  # noqa: PLC0415
    from godwit.lab.runner import RunOptions  # noqa: PLC0415

    return RunOptions(
        jobs=jobs or os.cpu_count() or 1,
        cache=cache or default_folder(),
        master=master,
        keep_traces=keep_traces,
    )
