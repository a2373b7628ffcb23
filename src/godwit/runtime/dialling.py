"""Keeps a link: calls a neighbour, and calls again whenever the connection is gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from godwit.broker.stimuli import LinkKind, Neighbour
from godwit.errors import GodwitError, PeerError
from godwit.protocol.backoff import Backoff
from godwit.protocol.call import Call, CycleError, LaneOverError, LinkedError, Opener
from godwit.protocol.connection import Connection
from godwit.protocol.frames import Hello, Welcome
from godwit.protocol.supervision import Supervisor
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.node_links import NodeLinks
from godwit.runtime.port import LinkPort

log = logging.getLogger("godwit.dialling")


class _LinkOver(BaseException):
    """The link is not needed any more."""


class Dialler:
    """One link of this broker that it has to establish itself."""

    def __init__(
        self,
        node: BrokerNode,
        opener: Opener,
        *,
        where: str,
        secret: str = "",
        kind: LinkKind = LinkKind.PRIMARY,
        lane: int = 0,
        only_asks: bool = False,
    ) -> None:
        self.where = where
        self.linked = asyncio.Event()
        """Set when there has been a link, or none is needed any more."""
        self._node = node
        self._opener = opener
        self._secret = secret
        self._kind = kind
        self._lane = lane
        self._only_asks = only_asks
        self.is_over = False
        """The epoch of the link is over."""
        self._link: LinkPort | None = None
        self._backoff = Backoff()
        self._refusal = ""
        self._supervisor = Supervisor(
            log, "no link", trouble="not linked yet", level=logging.INFO, where=where
        )

    @property
    def trouble(self) -> str | None:
        """Why there is no link; None if there is one."""
        return self._supervisor.trouble

    async def run(self) -> None:
        """Until cancelled, or the epoch of the link is over."""
        with contextlib.suppress(_LinkOver):
            await self._supervisor.run(self._stay_linked, self._backoff)
        self.is_over = True
        self.linked.set()

    async def _stay_linked(self) -> None:
        neighbour = Neighbour(self._links.name_of(self.where), self._lane)
        if not self._node.epochs.wants(neighbour):
            raise _LinkOver
        try:
            await self._be_linked(neighbour)
        except (GodwitError, OSError) as error:
            self._links.on_trouble(self.where, str(error) or type(error).__name__)
            raise

    async def _be_linked(self, neighbour: Neighbour) -> None:
        try:
            link = await self._call()
            await self._in_use(link)
        except LaneOverError as error:
            self._node.epochs.on_lane_over(neighbour, error.news)
            raise _LinkOver from error
        except CycleError as error:
            self._on_cycle(str(error), error.broker)
            raise
        except LinkedError as error:
            found = self._links.linked(self.where, error.broker)
            if found is None:
                raise
            link = found
        self._refusal = ""
        self._links.on_trouble(self.where, "")
        self._supervisor.recover()
        self._backoff.reset()
        self.linked.set()
        await link.detached.wait()
        raise PeerError("the connection was lost")

    async def _in_use(self, link: LinkPort) -> None:
        """Wait until a new link is up; CycleError if it is refused."""
        if link.is_pending:
            await link.decided.wait()
        if link.refusal is not None:
            raise CycleError(link.refusal, link.hop.name)
        if link.is_pending:
            raise PeerError("the connection was lost before the link was in use")

    def _on_cycle(self, reason: str, broker: str) -> None:
        """It is tried again: another link may be removed, and this one take its place."""
        self._links.on_refused(self.where, broker)
        if reason != self._refusal:
            self._refusal = reason
            log.warning("link refused", extra={"where": self.where, "reason": reason})

    async def _call(self) -> LinkPort:
        node, links, known = self._node, self._links, self._resumable()
        hello = Hello(
            role="broker",
            name=node.name,
            stream="" if known is None else known.stream.id,
            received=0 if known is None else known.stream.received,
            secret=self._secret,
            heartbeat_s=node.limits.heartbeat_s,
            has_holdings=known is not None,
            link=self._kind,
            is_expected=links.is_expected(self.where),
            has_given_up=links.has_given_up(self.where),
            lane=self._lane,
            only_asks=self._only_asks,
            is_in_use=node.epochs.is_in_use(self._lane),
        )

        def accept(welcome: Welcome, connection: Connection) -> LinkPort:
            connection.beat_every(welcome.heartbeat_s)
            self._link = links.link(welcome, connection, known, self._kind, where=self.where)
            return self._link

        call = Call(hello, accept, heartbeat_s=node.limits.heartbeat_s)
        return await call.accept_large().make(self._opener)

    @property
    def _links(self) -> NodeLinks:
        return self._node.epochs.links(self._lane)

    def _resumable(self) -> LinkPort | None:
        """The link there was, if its stream has not been given up."""
        link = self._link
        return link if link is not None and self._node.ports.get(link.hop) is link else None
