"""Clients are sent to another broker: POST /move and POST /drain.

The broker asks its clients.  They move by themselves (client/live_move.py) and say goodbye; a
client that has not arrived in time stays, and says why.
"""

from __future__ import annotations

import asyncio

from godwit.api.broker_api import DrainRequest, MoveOutcome, MoveRequest
from godwit.broker.stimuli import LocalClient
from godwit.content.messages import MoveTo
from godwit.errors import UsageError
from godwit.protocol.addresses import url_address
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.port import Port

POLL_S = 0.02
#: How often the clients of a broker that is drained are asked to move.
DRAIN_ROUNDS = 3
#: For a goodbye to arrive, once a client has given up or has moved.
GRACE_S = 1.0


def check(request: MoveRequest) -> None:
    """Check what the types do not."""
    url_address(request.address)
    given = (request.client is not None) + bool(request.clients) + bool(request.count)
    if given != 1 or request.count < 0:
        raise UsageError("say who: one of client, clients, and a count of 1 or more")


async def move_clients(node: BrokerNode, request: MoveRequest) -> MoveOutcome:
    """Ask clients to move, and wait until they have, or stay."""
    here = {port.hop.name: port for port in node.ports.values() if _is_there(port)}
    names = request.clients if request.client is None else [request.client]
    names = names or sorted(here)[: request.count]
    asked = {name: here[name] for name in names if name in here}
    within_s = request.within_s or max(1, len(asked)) * node.limits.move_timeout_s
    to = MoveTo(address=request.address, broker=request.broker, within_s=within_s)
    for name in asked:
        node.ask_to_move(LocalClient(name), to)
    moving, stayed = dict(asked), dict[str, str]()
    deadline_s = node.now_s() + within_s + GRACE_S
    while moving and node.now_s() < deadline_s:
        await asyncio.sleep(POLL_S)
        moving = {name: port for name, port in moving.items() if node.ports.get(port.hop) is port}
        stayed |= {n: p.stayed_reason for n, p in moving.items() if p.stayed_reason is not None}
        moving = {name: port for name, port in moving.items() if name not in stayed}
    stayed |= dict.fromkeys(moving, "no answer")
    return MoveOutcome(
        moved=[name for name in asked if name not in stayed],
        stayed=stayed,
        unknown=[name for name in names if name not in here],
    )


async def drain(node: BrokerNode, request: DrainRequest) -> MoveOutcome:
    """Refuse new clients, and move all clients away: those that stay are asked again."""
    url_address(request.address)
    node.is_draining = True
    moved: list[str] = []
    stayed: dict[str, str] = {}
    for _ in range(DRAIN_ROUNDS):
        names = [port.hop.name for port in node.ports.values() if _is_there(port)]
        if not names:
            return MoveOutcome(moved=moved, stayed={}, unknown=[])
        to = MoveRequest(address=request.address, broker=request.broker, clients=names)
        outcome = await move_clients(node, to)
        moved += outcome.moved
        stayed = outcome.stayed
    return MoveOutcome(moved=moved, stayed=stayed, unknown=[])


def _is_there(port: Port) -> bool:
    return isinstance(port.hop, LocalClient) and port.is_connected
