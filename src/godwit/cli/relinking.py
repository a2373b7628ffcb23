"""`godwit network relink`: a broker leaves a neighbour for another one, while the network runs."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer
import uvloop

import godwit.cli.network_plan  # noqa: F401  Its commands belong to the same group.
from godwit.api.network_api import ChangeKind, NetworkView
from godwit.cli.change_options import WAITING, ChangeOptions, with_change_options
from godwit.cli.network_commands import Broker, change_network, network, running_network
from godwit.errors import UsageError
from godwit.migration.delta_moves import DeltaMove
from godwit.overlay.topology import Topology, topology


@network.command()
@with_change_options(*WAITING)
def relink(
    broker: Broker,
    options: ChangeOptions,
    leaves: Annotated[str, typer.Option("--from", help="The neighbour that it leaves.")],
    joins: Annotated[str, typer.Option("--to", help="The broker that it is linked with instead.")],
) -> None:
    """Link a broker, and all that is behind it, to another place of the tree, without loss.

    For networks whose overlay is a tree or a mesh, which stays.  Write the new link into the
    network file as well, for the next start.
    """
    tree = tree_of(uvloop.run(running_network(options.at, options.secret)))
    after = DeltaMove(broker, leaves, joins).apply(tree)
    request = options.request(ChangeKind.RESHAPE, list(after.brokers), links=sorted(after.links))
    reason = options.reason or f"{broker} moves from {leaves} to {joins}"
    change_network(msgspec.structs.replace(request, reason=reason), options)


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
