"""`godwit croc apply`: a plan of the allocator, carried out on the running network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from godwit.api.plan_requests import PlanToApply, request_of
from godwit.cli.change_options import WAITING, ChangeOptions, with_change_options
from godwit.cli.croc import croc
from godwit.cli.gain_gate import GainOf, Rehearse, RequireGain, rehearse_before
from godwit.cli.network_commands import change_network
from godwit.errors import UsageError


@croc.command()
@with_change_options("per_s", "give_up_s", *WAITING)
def apply(
    options: ChangeOptions,
    plan: Annotated[
        Path, typer.Argument(help="Plan that `godwit croc plan --output` has written (JSON).")
    ],
    keep: Annotated[
        bool, typer.Option("--keep", help="Brokers that are not needed run on, without clients.")
    ] = False,
    rehearse: Rehearse = False,
    require_gain: RequireGain = "",
    gain_of: GainOf = "messages",
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
        rehearse_before(change, options.at, options.secret, require_gain, gain_of)
    facts = {name: each for name, each in options.facts.items() if name != "to"}
    change_network(request_of(planned, keeps=keep, **facts), options)


def read_plan(path: Path) -> PlanToApply:
    try:
        return msgspec.json.decode(path.read_bytes(), type=PlanToApply)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a plan of `godwit croc plan --output`: {error}") from None
