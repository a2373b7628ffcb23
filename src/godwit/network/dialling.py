"""Keeps a link: calls a neighbour, and calls again whenever the connection is gone."""

from __future__ import annotations

import asyncio
import logging

from godwit.errors import PeerError, RefusedError
from godwit.network.node import BrokerNode
from godwit.network.port import LinkPort
from godwit.wire.call import Call, Opener, Pauses
from godwit.wire.connection import Connection
from godwit.wire.frames import Hello, Welcome

log = logging.getLogger("godwit.dialling")


class Dialler:
    """One link of this broker that it has to establish itself."""

    def __init__(self, node: BrokerNode, opener: Opener, *, where: str, secret: str = "") -> None:
        self.where = where
        self.trouble: str | None = "not linked yet"
        """Why there is no link, if there is none."""
        self.linked = asyncio.Event()
        """Set when there has been a link."""
        self._node = node
        self._opener = opener
        self._secret = secret
        self._link: LinkPort | None = None

    async def run(self) -> None:
        """Until cancelled."""
        pauses = Pauses()
        while True:
            try:
                link = await self._call()
                self.trouble = None
                self.linked.set()
                pauses.reset()
                await link.detached.wait()
                self.trouble = "the connection was lost"
            except (OSError, PeerError, RefusedError) as error:
                trouble = str(error) or type(error).__name__
                if trouble != self.trouble:
                    log.info("no link", extra={"where": self.where, "reason": trouble})
                self.trouble = trouble
            except Exception as error:  # What nobody has thought of must not end it, either.
                log.exception("no link", extra={"where": self.where})
                self.trouble = f"{type(error).__name__}: {error}"
            await pauses.take()

    async def _call(self) -> LinkPort:
        node, known = self._node, self._resumable()
        hello = Hello(
            role="broker",
            name=node.name,
            stream="" if known is None else known.stream.id,
            received=0 if known is None else known.stream.received,
            secret=self._secret,
            heartbeat_s=node.limits.heartbeat_s,
            has_holdings=known is not None,
        )

        def accept(welcome: Welcome, connection: Connection) -> LinkPort:
            connection.beat_every(welcome.heartbeat_s)
            self._link = node.link(welcome, connection, known)
            return self._link

        return await Call(hello, accept, heartbeat_s=node.limits.heartbeat_s).make(self._opener)

    def _resumable(self) -> LinkPort | None:
        """The link there was, if its stream has not been given up."""
        link = self._link
        return link if link is not None and self._node.ports.get(link.hop) is link else None
