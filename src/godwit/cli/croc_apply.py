"""`godwit croc apply`: a plan of the allocator, carried out on the running network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from godwit.api.plan_requests import PlanToApply, request_of
from godwit.cli.croc import croc
from godwit.cli.gain_gate import GainOf, Rehearse, RequireGain, rehearse_before
from godwit.cli.network_commands import (
    LISTEN,
    At,
    DryRun,
    GiveUpS,
    PerS,
    Reason,
    TakeOver,
    WithinS,
    change_network,
)
from godwit.cli.options import Json, Secret
from godwit.errors import UsageError


@croc.command()
def apply(
    plan: Annotated[
        Path, typer.Argument(help="Plan that `godwit croc plan --output` has written (JSON).")
    ],
    keep: Annotated[
        bool, typer.Option("--keep", help="Brokers that are not needed run on, without clients.")
    ] = False,
    rehearse: Rehearse = False,
    require_gain: RequireGain = "",
    gain_of: GainOf = "messages",
    per_s: PerS = None,
    dry_run: DryRun = False,
    reason: Reason = "",
    give_up_s: GiveUpS = 15.0,
    within_s: WithinS = 60.0,
    take_over: TakeOver = False,
    at: At = LISTEN,
    json: Json = False,
    secret: Secret = "",
) -> None:
    """Carry out a plan on the running network, without loss: tree, clients, brokers.

    Brokers that the plan needs are started, if they do not run; the network gets the plan's tree;
    clients move, at a limited rate; brokers that are not needed stop.  The exit code is 1 if not
    all of it was done, or a rehearsal has gained too little: then nothing is.
    """
    planned = read_plan(plan)
    if rehearse or require_gain:
        from godwit.rehearsal.changes_to_try import RehearsedChange  # noqa: PLC0415  Simulator.

        change = RehearsedChange(text=str(plan), plan=planned)
        rehearse_before(change, at, secret, require_gain, gain_of)
    request = request_of(
        planned, keeps=keep, per_s=per_s, dry_run=dry_run, reason=reason,
        give_up_s=give_up_s, within_s=within_s, take_over=take_over,
    )  # fmt: skip
    change_network(request, at, secret, json=json)


def read_plan(path: Path) -> PlanToApply:
    try:
        return msgspec.json.decode(path.read_bytes(), type=PlanToApply)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a plan of `godwit croc plan --output`: {error}") from None
