"""An operator asks a broker to send clients elsewhere: POST /move.

The broker asks its clients.  They move by themselves (client/journey.py) and say goodbye, or stay,
if they have not arrived when the time is up, and say why.
"""

from __future__ import annotations

import asyncio

from godwit.broker.stimuli import Client
from godwit.content.messages import MoveTo
from godwit.errors import UsageError
from godwit.network.node import BrokerNode
from godwit.network.port import Port
from godwit.rest.moving import MoveOutcome, MoveRequest
from godwit.wire.addresses import url_address

POLL_S = 0.02
#: For a goodbye to arrive, once a client has given up or has moved.
GRACE_S = 1.0


def check(request: MoveRequest) -> None:
    """What the types do not say."""
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
    within_s = max(1, len(asked)) * node.limits.move_timeout_s
    to = MoveTo(address=request.address, broker=request.broker, within_s=within_s)
    for name in asked:
        node.ask_to_move(Client(name), to)
    moving, stayed = dict(asked), dict[str, str]()
    deadline_s = node.now_s() + within_s + GRACE_S
    while moving and node.now_s() < deadline_s:
        await asyncio.sleep(POLL_S)
        moving = {name: port for name, port in moving.items() if node.ports.get(port.hop) is port}
        stayed |= {n: p.why_stayed for n, p in moving.items() if p.why_stayed is not None}
        moving = {name: port for name, port in moving.items() if name not in stayed}
    stayed |= dict.fromkeys(moving, "no answer")
    return MoveOutcome(
        moved=[name for name in asked if name not in stayed],
        stayed=stayed,
        unknown=[name for name in names if name not in here],
    )


def _is_there(port: Port) -> bool:
    return isinstance(port.hop, Client) and port.is_connected
