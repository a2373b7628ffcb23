"""Carries a change out only if its rehearsal gains enough: --rehearse and --require-gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from godwit.errors import UsageError

if TYPE_CHECKING:
    from godwit.rehearsal.changes_to_try import RehearsedChange
    from godwit.rehearsal.rehearsing import RehearsalReport

ObjectiveName: TypeAlias = Literal["messages", "bytes", "load", "delay", "hops", "brokers"]
GainOf: TypeAlias = Annotated[
    ObjectiveName, typer.Option("--gain-of", help="What a gain is of; less of it is better.")
]
RequireGain: TypeAlias = Annotated[
    str,
    typer.Option(
        "--require-gain",
        help="Rehearse it before, and do it only with a gain of at least so much, as 10%.",
        show_default="none",
    ),
]
Rehearse: TypeAlias = Annotated[
    bool, typer.Option("--rehearse", help="Rehearse it before, and say what it gains.")
]


def percentage(text: str) -> float:
    """10% or 0.1."""
    number, sign = text.strip().removesuffix("%"), text.strip().endswith("%")
    try:
        value = float(number) / (100.0 if sign else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 1.0:
        raise UsageError(f"{text!r} is not a gain: write 10%, or 0.1; it is below 100%")
    return value


def is_any_enough(report: RehearsalReport, required: float) -> bool:
    """Whether a change gains enough; says it if not."""
    from godwit.cli.whatif_report import gain_line  # noqa: PLC0415  As below.
    from godwit.rehearsal.rehearsing import is_enough  # noqa: PLC0415

    if any(is_enough(each, required) for each in report.outcomes):
        return True
    best = gain_line(report.outcomes[0], report) if report.outcomes else "no change was rehearsed"
    typer.echo(f"{best}; {required:.0%} are required", err=True)
    return False


def rehearse_before(
    change: RehearsedChange, at: str, secret: str, require_gain: str, objective: ObjectiveName
) -> None:
    """Rehearse a change of the network of a coordinator; ends the command if it gains too little.

    Without `require_gain` it only says what it gains.
    """
    from godwit.cli.whatif_report import gain_line  # noqa: PLC0415  Few commands need it.
    from godwit.cli.whatif_sources import live_snapshot  # noqa: PLC0415
    from godwit.rehearsal.rehearsing import rehearse  # noqa: PLC0415
    from godwit.rehearsal.taking_snapshots import SnapshotTimes  # noqa: PLC0415

    required = percentage(require_gain) if require_gain else None
    report = rehearse(live_snapshot([at], SnapshotTimes(), secret), [change], objective=objective)
    for outcome in report.outcomes:
        typer.echo(f"rehearsed: {gain_line(outcome, report)}", err=True)
    if required is not None and not is_any_enough(report, required):
        raise typer.Exit(code=1)
