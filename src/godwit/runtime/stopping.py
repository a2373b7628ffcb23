"""How a broker leaves its peers: with a goodbye, after what is queued has left, or without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from godwit.protocol.frames import Goodbye
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.port import ClientPort, LinkPort, Port

STOPPING = "the broker is stopping"
DRAIN_STEP_S = 0.02


def hang_up(node: BrokerNode) -> None:
    """Drop every connection without a goodbye, as a crash does."""
    connections = [port.connection for port in node.ports.values()]
    for connection in [*connections, *node.callers]:
        if connection is not None:
            connection.abort()


async def say_goodbye(node: BrokerNode) -> None:
    """Say goodbye to clients, then to neighbours, within `drain_s`."""
    for caller in list(node.callers):
        caller.close(Goodbye(reason=STOPPING))
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + node.limits.drain_s
    for kind in (ClientPort, LinkPort):
        ports = [port for port in node.ports.values() if isinstance(port, kind)]
        left_s = deadline_s - loop.time()
        await part_from(ports, STOPPING, within_s=left_s, for_good=node.is_draining)


async def part_from(
    ports: Sequence[Port], reason: str, *, within_s: float, for_good: bool = False
) -> None:
    """Send what is queued for peers, while there is time, then say goodbye to them."""
    deadline_s = asyncio.get_running_loop().time() + within_s
    # A client that is away will not be back in time; a link may, and shall take what is queued.
    waited_for = [port for port in ports if port.is_connected or port.is_link]
    await _until(lambda: all(p.stream.is_idle for p in waited_for), deadline_s)
    for port in ports:
        port.part(reason, for_good=for_good)
    await _until(lambda: not any(p.is_connected for p in ports), deadline_s)


async def _until(done: Callable[[], bool], deadline_s: float) -> None:
    # Polls: these conditions become true in many places, which do not signal it.
    loop = asyncio.get_running_loop()
    while not done() and loop.time() < deadline_s:  # noqa: ASYNC110
        await asyncio.sleep(DRAIN_STEP_S)
