"""A subscriber that does not read: nobody waits for it for long, and no drop is silent."""

from __future__ import annotations

import asyncio

import msgspec
import uvloop
from tests.live.tick_clients import tick_publisher, tick_subscriber
from tests.live.watching import metric

from godwit.content.filters import Filter
from godwit.content.messages import Publication, Subscription, SubscriptionId, SubscriptionInEffect
from godwit.overlay.topology import chain
from godwit.protocol.addresses import url_address
from godwit.protocol.frames import (
    HEADER,
    Acknowledge,
    Dropped,
    Hello,
    ToClient,
    decode_to_client,
    encode,
)
from godwit.runtime.processes import Processes
from godwit.runtime.settings import Limits, network_of

PUBLICATIONS = 8_000
PAYLOAD = bytes(1_000)
LIMITS = Limits(patience_s=0.3, client_queue_bytes=256 * 1024, window_bytes=64 * 1024)


class RawSubscriber:
    """Reads frames when it is told to, and acknowledges nothing by itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbered = 0

    async def subscribe(self, filter: str) -> None:
        id = SubscriptionId("sloth/s1")
        self._writer.write(encode(Hello(role="client", name="sloth")))
        await self._frame()  # Welcome.
        self._writer.write(encode(Subscription(id=id, filter=Filter.parse(filter))))
        while not isinstance(await self.read(), SubscriptionInEffect):
            pass

    async def read(self) -> ToClient:
        frame = decode_to_client(await self._frame())
        if not isinstance(frame, Acknowledge):
            self._numbered += 1
        return frame

    def acknowledge(self) -> None:
        self._writer.write(encode(Acknowledge(received=self._numbered)))

    async def _frame(self) -> bytes:
        length, _ = HEADER.unpack(await self._reader.readexactly(HEADER.size))
        return await self._reader.readexactly(length)

    def hang_up(self) -> None:
        self._writer.transport.abort()


def test_a_subscriber_that_does_not_read_holds_nobody_up_for_long() -> None:
    uvloop.run(_does_not_read())


async def _does_not_read() -> None:
    network = msgspec.structs.replace(network_of(chain(2), http_port=0), limits=LIMITS)
    async with (
        asyncio.timeout(60),
        Processes(network) as running,
        tick_publisher(running.url("B1"), "paul") as paul,
        tick_subscriber(running.url("B2"), "alice") as alice,
    ):
        sloth = RawSubscriber(*await asyncio.open_connection(*url_address(running.url("B2"))))
        await sloth.subscribe("class = 'TICK'")
        paul.payload = PAYLOAD
        await paul.publish(PUBLICATIONS)
        await alice.has_received(paul)
        assert alice.has_received_all(paul)

        dropped = await metric(running, "B2", "godwit_dropped_total", reason="slow subscriber")
        assert PUBLICATIONS / 2 < dropped < PUBLICATIONS
        assert await metric(running, "B2", "godwit_isolations_total") >= 1
        queued_bytes = await metric(running, "B2", "godwit_queue_bytes", kind="client")
        assert queued_bytes < LIMITS.client_queue_bytes + 2 * 262_144

        # When it reads again, it is told how many are missing, and where.
        read = missing = 0
        while read + missing < PUBLICATIONS:
            frame = await sloth.read()
            sloth.acknowledge()
            if isinstance(frame, Publication):
                assert frame.content["n"] == read + missing
                read += 1
            elif isinstance(frame, Dropped):
                missing += frame.count
        assert missing == dropped
        sloth.hang_up()
