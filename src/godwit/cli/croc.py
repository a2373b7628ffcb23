"""The commands of CROC: croc gather|plan; croc_apply.py has croc apply.

`gather` asks a running network what its clients receive, and writes it to a file.  `plan` makes a
plan from such a file, from a running network or from a trace, and shows it.  docs/croc.md has both.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
import typer

from godwit.cli.croc_large import SPARK_FROM, plan_profiles_on_spark, plan_trace_on_spark
from godwit.cli.croc_report import plan_text
from godwit.cli.croc_sources import (
    gather_live,
    gathered_of_trace,
    read_profiles,
    with_missing_refused,
    with_stopped,
)
from godwit.cli.extras import needs
from godwit.cli.options import Json, Secret
from godwit.errors import UsageError
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings

croc = typer.Typer(
    no_args_is_help=True,
    help="Find out how few brokers will do: gather profiles, and plan who serves whom.",
)

#: Pictures that can be drawn.
PICTURES = (".svg", ".png")

Where: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        help="Network file, or HTTP addresses of brokers, http://HOST:PORT, which are tried in"
        " order.",
        show_default=False,
    ),
]
Timeout: TypeAlias = Annotated[
    float,
    typer.Option(
        min=0.1, max=3_600, help="A broker that says nothing for so many seconds is missing."
    ),
]
PlannedOn: TypeAlias = Annotated[
    Literal["auto", "here", "spark"],
    typer.Option(
        help="Where CRAM runs: in this process, or on Spark; auto: on Spark for traces with"
        f" {SPARK_FROM:,} clients or more."
    ),
]
AssignmentFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="On Spark: folder for the broker of each client, as Parquet files, instead of in the"
        " plan."
    ),
]
WithoutMissing: TypeAlias = Annotated[
    bool,
    typer.Option("--without-missing", help="Go on without the brokers that have not answered."),
]
WithStopped: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--with-stopped",
        help="Brokers of the network file that do not run may be used: `croc apply` starts them.",
    ),
]

Profiles: TypeAlias = Annotated[
    Path | None, typer.Option(help="File that `godwit croc gather` has written.")
]
Trace: TypeAlias = Annotated[Path | None, typer.Option(help="Folder with the trace of a run.")]
Master: TypeAlias = Annotated[
    str,
    typer.Option(help="Spark master for --trace and --on spark: local\\[*] or spark://HOST:PORT."),
]
Capacities: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="For --trace: network file, or JSON file with `brokers`, that has the output bandwidth"
        " of each broker."
    ),
]
Algorithm: TypeAlias = Annotated[
    str,
    typer.Option(
        help="cram-iou, cram-ios, cram-xor, cram-intersect, bin-packing, fbf, pairwise-k,"
        " pairwise-n, manual or automatic."
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of algorithms that draw random numbers.")]
SearchRule: TypeAlias = Annotated[
    Literal["exact", "stop-rule"],
    typer.Option(help="How CRAM prunes its search: exactly, or as the thesis does."),
]
Improve: TypeAlias = Annotated[
    float, typer.Option(min=0, help="Seconds for improving the plan by local search.")
]
Stay: TypeAlias = Annotated[
    float, typer.Option(min=0, max=1, help="From 0, the best plan, to 1, the fewest clients move.")
]
PlanFile: TypeAlias = Annotated[
    Path | None, typer.Option(help="File for the plan, as JSON, beside what is printed.")
]
Picture: TypeAlias = Annotated[
    Path | None, typer.Option(help="File for a picture of tree and loads: .svg or .png.")
]


@croc.command()
def gather(
    where: Where = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File for the profiles, as JSON.", show_default="standard output"),
    ] = None,
    timeout: Timeout = 10.0,
    without_missing: WithoutMissing = False,
    secret: Secret = "",
) -> None:
    r"""Ask all brokers of a running network what their clients receive.

    Brokers need the table \[profiling] in their network file.  Those that do not answer are named,
    and the exit code is 1.
    """
    if not where:
        raise UsageError("name a network file, or the HTTP address of a broker: http://HOST:PORT")
    gathered = gather_live(where, timeout_s=timeout, secret=secret)
    document = msgspec.json.format(msgspec.json.encode(gathered), indent=0 if output else 1)
    if output is None:
        typer.echo(document)
    else:
        _write(output, document)
        typer.echo(f"{output}: {_summary(gathered)}", err=True)
    if gathered.missing:
        typer.echo(f"no answer from: {', '.join(gathered.missing)}", err=True)
        if not without_missing:
            raise typer.Exit(code=1)


def _summary(gathered: Gathered) -> str:
    return (
        f"{len(gathered.brokers)} brokers, {len(gathered.publishers)} publishers,"
        f" {len(gathered.subscriptions)} subscriptions"
    )


@croc.command()
def plan(
    where: Where = None,
    profiles: Profiles = None,
    trace: Trace = None,
    master: Master = "local[*]",
    capacities: Capacities = None,
    algorithm: Algorithm = "cram-iou",
    seed: Seed = 0,
    search: SearchRule = "exact",
    improve: Improve = 0.0,
    stay: Stay = 0.0,
    on: PlannedOn = "auto",
    assignment: AssignmentFolder = None,
    without_missing: WithoutMissing = False,
    stopped: WithStopped = False,
    json: Json = False,
    output: PlanFile = None,
    picture: Picture = None,
    timeout: Timeout = 10.0,
    secret: Secret = "",
) -> None:
    """Plan which brokers are kept, how they are linked, and which clients they serve.

    The profiles come from a file, a trace, or a running network: name one of them.  Nothing is
    changed in the network.
    """
    settings = AllocationSettings(
        algorithm=algorithm, seed=seed, search=search, improve_s=improve, stay=stay
    )
    if picture is not None and picture.suffix not in PICTURES:
        raise UsageError(f"--picture {picture}: the name must end in {' or '.join(PICTURES)}")
    if sum((bool(where), profiles is not None, trace is not None)) != 1:
        raise UsageError(
            "name one source of profiles: --profiles FILE, --trace FOLDER, or a running network"
        )
    if capacities is not None and trace is None:
        raise UsageError("--capacities is for --trace: profiles of brokers have their capacities")
    if assignment is not None and on != "spark":
        raise UsageError("--assignment is for plans on Spark: add --on spark")
    if trace is not None and on != "here":
        least = SPARK_FROM if on == "auto" else 0
        large = plan_trace_on_spark(trace, capacities, master, settings, assignment, least)
        if large is not None:
            return _show(*large, json=json, output=output, picture=picture)
    if profiles is not None:
        gathered = read_profiles(profiles)
    elif trace is not None:
        gathered = gathered_of_trace(trace, capacities, master)
    else:
        gathered = gather_live(where or [], timeout_s=timeout, secret=secret)
    if stopped:
        gathered = with_stopped(gathered, where or [])
    gathered = with_missing_refused(gathered, is_allowed=without_missing)
    if on == "spark":
        made = plan_profiles_on_spark(gathered, master, settings, assignment)
    else:
        made = make_plan(gathered, settings, clock=time.monotonic)
    return _show(made, gathered, json=json, output=output, picture=picture)


def _show(
    made: AllocationPlan,
    gathered: Gathered,
    *,
    json: bool,
    output: Path | None,
    picture: Path | None,
) -> None:
    document = msgspec.json.encode(made)
    if output is not None:
        _write(output, msgspec.json.format(document, indent=1))
    if picture is not None:
        with needs("lab", "a picture"):
            from godwit.cli.croc_picture import draw  # noqa: PLC0415  matplotlib takes a second.
        draw(made, picture)
    if json:
        sys.stdout.write(document.decode() + "\n")
        return
    for line in plan_text(made, gathered):
        typer.echo(line)


def _write(path: Path, text: bytes) -> None:
    try:
        path.write_bytes(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
