"""The commands of CROC: croc gather|plan.

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

from godwit.cli.croc_report import plan_text
from godwit.cli.croc_sources import (
    gather_live,
    gathered_of_trace,
    read_profiles,
    with_missing_refused,
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
WithoutMissing: TypeAlias = Annotated[
    bool,
    typer.Option("--without-missing", help="Go on without the brokers that have not answered."),
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
    profiles: Annotated[
        Path | None, typer.Option(help="File that `godwit croc gather` has written.")
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Folder with the trace of a run.")] = None,
    master: Annotated[
        str, typer.Option(help="Spark master for --trace: local\\[*] or spark://HOST:PORT.")
    ] = "local[*]",
    capacities: Annotated[
        Path | None,
        typer.Option(
            help="For --trace: network file, or JSON file with `brokers`, that has the output"
            " bandwidth of each broker."
        ),
    ] = None,
    algorithm: Annotated[
        str,
        typer.Option(
            help="cram-iou, cram-ios, cram-xor, cram-intersect, bin-packing, fbf, pairwise-k,"
            " pairwise-n, manual or automatic."
        ),
    ] = "cram-iou",
    seed: Annotated[int, typer.Option(help="Seed of algorithms that draw random numbers.")] = 0,
    search: Annotated[
        Literal["exact", "stop-rule"],
        typer.Option(help="How CRAM prunes its search: exactly, or as the thesis does."),
    ] = "exact",
    improve: Annotated[
        float, typer.Option(min=0, help="Seconds for improving the plan by local search.")
    ] = 0.0,
    stay: Annotated[
        float,
        typer.Option(min=0, max=1, help="From 0, the best plan, to 1, the fewest clients move."),
    ] = 0.0,
    without_missing: WithoutMissing = False,
    json: Json = False,
    output: Annotated[
        Path | None, typer.Option(help="File for the plan, as JSON, beside what is printed.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="File for a picture of tree and loads: .svg or .png.")
    ] = None,
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
    if profiles is not None:
        gathered = read_profiles(profiles)
    elif trace is not None:
        gathered = gathered_of_trace(trace, capacities, master)
    else:
        gathered = gather_live(where or [], timeout_s=timeout, secret=secret)
    made = make_plan(
        with_missing_refused(gathered, is_allowed=without_missing), settings, clock=time.monotonic
    )
    _show(made, gathered, json=json, output=output, picture=picture)


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
