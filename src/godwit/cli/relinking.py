"""`godwit network relink`: a broker leaves a neighbour for another one, while the network runs."""

from __future__ import annotations

from typing import Annotated

import typer
import uvloop

import godwit.cli.network_plan  # noqa: F401  Its commands belong to the same group.
from godwit.api.network_api import ChangeKind, ChangeRequest, NetworkView
from godwit.cli.network_commands import (
    LISTEN,
    At,
    Broker,
    DryRun,
    Reason,
    TakeOver,
    WithinS,
    change_network,
    network,
    running_network,
)
from godwit.cli.options import Json, Secret
from godwit.errors import UsageError
from godwit.migration.delta_moves import DeltaMove
from godwit.overlay.topology import Topology, topology


@network.command()
def relink(
    broker: Broker,
    leaves: Annotated[str, typer.Option("--from", help="The neighbour that it leaves.")],
    joins: Annotated[str, typer.Option("--to", help="The broker that it is linked with instead.")],
    dry_run: DryRun = False,
    reason: Reason = "",
    within_s: WithinS = 60.0,
    take_over: TakeOver = False,
    at: At = LISTEN,
    json: Json = False,
    secret: Secret = "",
) -> None:
    """Link a broker, and all that is behind it, to another place of the tree, without loss.

    For networks whose overlay is a tree or a mesh, which stays.  Write the new link into the
    network file as well, for the next start.
    """
    tree = tree_of(uvloop.run(running_network(at, secret)))
    after = DeltaMove(broker, leaves, joins).apply(tree)
    request = ChangeRequest(
        kind=ChangeKind.RESHAPE,
        brokers=list(after.brokers),
        links=sorted(after.links),
        dry_run=dry_run,
        reason=reason or f"{broker} moves from {leaves} to {joins}",
        within_s=within_s,
        take_over=take_over,
    )
    change_network(request, at, secret, json=json)


def tree_of(view: NetworkView) -> Topology:
    """The brokers and links of a network; raise UsageError if it is no tree just now."""
    links = [(link.one, link.other) for link in view.links if link.status == "up"]
    found = topology((broker.broker for broker in view.brokers), links)
    if not found.is_tree:
        raise UsageError(
            "the links that are up are not a tree: a broker is missing, or the overlay is"
            " `clusters` (godwit network show)"
        )
    return found
