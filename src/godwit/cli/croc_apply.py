"""`godwit croc apply`: a plan of the allocator, carried out on the running network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from godwit.api.network_api import ChangeKind, ChangeRequest
from godwit.cli.croc import croc
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


class PlannedLoad(msgspec.Struct, frozen=True):
    id: str
    output_bytes_s: float = 0.0


class PlanToApply(msgspec.Struct, frozen=True):
    """What is read of a plan of `godwit croc plan`."""

    links: list[tuple[str, str]]
    root: str
    clients: dict[str, str] = {}
    brokers: list[PlannedLoad] = []

    @property
    def used(self) -> list[str]:
        """The brokers that it needs, the root first."""
        ends = [end for link in self.links for end in link]
        return list(dict.fromkeys([self.root, *(each.id for each in self.brokers), *ends]))


@croc.command()
def apply(
    plan: Annotated[
        Path, typer.Argument(help="Plan that `godwit croc plan --output` has written (JSON).")
    ],
    keep: Annotated[
        bool, typer.Option("--keep", help="Brokers that are not needed run on, without clients.")
    ] = False,
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
    all of it was done.
    """
    request = request_of(
        read_plan(plan), keeps=keep, per_s=per_s, dry_run=dry_run, reason=reason,
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


def request_of(plan: PlanToApply, **facts: object) -> ChangeRequest:
    """The change that carries out a plan."""
    request = ChangeRequest(
        kind=ChangeKind.ALLOCATE,
        brokers=plan.used,
        link=plan.root,
        links=plan.links,
        clients=plan.clients,
        outputs={each.id: each.output_bytes_s for each in plan.brokers},
    )
    return msgspec.structs.replace(request, **facts)
