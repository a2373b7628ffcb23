"""The epochs of one live broker: the links of each, what waits, and how it comes back into them.

A broker without state learns from its neighbours which epochs are in use: `EpochNews` is the first
frame on a new stream, and the answer to a caller whose lane is over.  It rejoins an epoch that
follows its own, as after a failure during the change, or takes a later one for its own.

The links of an epoch that is over are closed when everything on them is acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from godwit.broker.effects import OpenLink
from godwit.broker.routing import EpochStatus, Reshapable, in_use
from godwit.broker.stimuli import (
    AdoptEpoch,
    EpochStimulus,
    FlipEpoch,
    LinkDown,
    LinkKind,
    LinkUp,
    LocalClient,
    Neighbour,
)
from godwit.content.link_messages import EpochNews, NetworkShape
from godwit.errors import PeerError, UsageError
from godwit.overlay.epochs.epoch_phases import EpochPhase
from godwit.overlay.epochs.epoch_places import is_outside
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.policies.soft_links.soft_link_manager import SoftLinkManager
from godwit.protocol.frames import Hello, encode
from godwit.runtime.epoch_hold import EpochHold
from godwit.runtime.giving_up import SAID_GOODBYE
from godwit.runtime.node_links import AlreadyLinked, NodeLinks
from godwit.runtime.port import LinkPort, Port

if TYPE_CHECKING:
    from godwit.runtime.broker_node import BrokerNode

log = logging.getLogger("godwit.epochs")

#: How often the links of an epoch that is over are looked at.
CLOSE_STEP_S = 0.05
#: For how many times `link_s` another broker may still use an epoch that is over here.
DRAINED_LINKS = 2
EPOCH_OVER = "the epoch of this link is over"
HAS_LEFT = "has left for good"


class LaneOver(PeerError):  # noqa: N818  An answer to the caller, not an error of ours.
    """A caller's link belongs to an epoch that is over."""

    def __init__(self, lane: int, news: EpochNews) -> None:
        super().__init__(f"epoch {lane} is over")
        self.news = news


class NodeEpochs:
    def __init__(self, node: BrokerNode) -> None:
        self._node = node
        self._lanes: dict[int, NodeLinks] = {node.links.lane: node.links}
        self._begun_s: dict[int, float] = {}
        """When the links of an epoch were begun to be made, by the loop's clock."""
        self._closing: dict[int, asyncio.Task[None]] = {}
        self._fencing = 0
        """The highest number of a coordinator so far."""
        self._dropped_s = -inf
        """When the last epoch was dropped here."""

    @property
    def status(self) -> EpochStatus:
        epochs = self._node.broker.epochs
        return EpochStatus(epoch=0, phase="fixed") if epochs is None else epochs.status

    @property
    def is_outside(self) -> bool:
        """Whether the network has a shape that this broker is not part of."""
        epochs = self._node.broker.epochs
        return epochs is not None and epochs.is_outside

    @property
    def has_nothing_to_learn(self) -> bool:
        """Whether no epoch that this broker is part of is in use."""
        return self.is_outside and not _is_committed(self.status)

    @property
    def _shape(self) -> NetworkShape | None:
        """Of the next epoch."""
        epochs = self._node.broker.epochs
        return None if epochs is None else epochs.shape

    # -- lanes ---------------------------------------------------------------------------------

    def knows(self, lane: int) -> bool:
        status = self.status
        return lane in self._lanes or lane in (status.epoch, status.next_epoch)

    def wants(self, neighbour: Neighbour) -> bool:
        """Whether there may be such a link; one of a dropped epoch only if it is still there.

        One of an epoch that is given up may not: its links would be made again while they close.
        """
        lane, status = neighbour.lane, self.status
        if lane < status.epoch:
            return neighbour in self._node.ports
        is_given_up = lane in self._closing and lane > status.epoch
        return self.knows(lane) and not is_given_up

    def links_of(self, neighbour: Neighbour) -> NodeLinks:
        return self.links(neighbour.lane)

    def links(self, lane: int) -> NodeLinks:
        """The links of one epoch."""
        found = self._lanes.get(lane)
        if found is None:
            shape = self._shape_of(lane)
            neighbours = [] if shape is None else shape.neighbours(self._node.name)
            found = NodeLinks(self._node, neighbours, (), lane)
            if self.knows(lane):
                self._lanes[lane] = found
                self._begun_s[lane] = asyncio.get_running_loop().time()
        return found

    def _shape_of(self, lane: int) -> NetworkShape | None:
        epochs = self._node.broker.epochs
        shapes = () if epochs is None else (epochs.shape, epochs.news.now)
        return next((each for each in shapes if each is not None and each.epoch == lane), None)

    def is_in_use(self, lane: int) -> bool:
        """Whether the epoch of a lane is not one that is only being built."""
        status = self.status
        if lane == status.next_epoch:
            return _is_committed(status)
        return lane == status.epoch or (lane in self._lanes and lane < status.epoch)

    @property
    def expected(self) -> set[Neighbour]:
        """Neighbours that this broker waits for, in all epochs in use."""
        lanes = [lane for lane in self._lanes if lane not in self._closing and self.is_in_use(lane)]
        return set().union(*(self._lanes[lane].expected for lane in lanes))

    def give_up_expected(self) -> None:
        """Links that were not up within `link_s`; those of a younger epoch have their own time."""
        loop, limit_s = asyncio.get_running_loop(), self._node.limits.link_s
        for lane in [lane for lane in self._lanes if lane not in self._closing]:
            left_s = self._begun_s.get(lane, -inf) + limit_s - loop.time()
            if left_s > 0.0:
                loop.call_later(left_s, self.give_up_expected)
            else:
                self._lanes[lane].give_up_expected()

    def is_late_for(self, hello: Hello) -> bool:
        """Whether the caller's link belongs to an epoch that this broker has yet to learn of.

        Raises LaneOver, and PeerError if the epoch is only being built elsewhere.
        """
        hop = hello_hop(hello)
        if not isinstance(hop, Neighbour):
            return False
        if self.is_outside and hello.lane == self.status.epoch:
            raise PeerError(f"broker {self._node.name} is not part of epoch {hello.lane}")
        if self.wants(hop):
            if hello.only_asks:
                raise AlreadyLinked(hello.name)
            return False
        if hello.lane < self.status.epoch:
            assert self._node.broker.epochs is not None
            raise LaneOver(hello.lane, self._news(self._node.broker.epochs))
        if not hello.is_in_use:
            raise PeerError(f"broker {self._node.name} does not build epoch {hello.lane} yet")
        return True

    # -- a change ------------------------------------------------------------------------------

    def check_fencing(self, number: int) -> None:
        """Raise UsageError if another coordinator has taken over from this one."""
        if number < self._fencing:
            raise UsageError(
                f"a coordinator with fencing number {self._fencing} has taken over from {number}"
            )
        self._fencing = number

    def change(self, stimulus: EpochStimulus) -> EpochStatus:
        """A coordinator asks for something, or a neighbour has told of it; UsageError if not."""
        node = self._node
        before = self.status
        if node.hold is None and node.broker.epochs is not None:
            node.hold = EpochHold(node.broker.epochs, window_bytes=node.limits.window_bytes)
            node.outbox.on_acknowledging = self._on_acknowledging
        try:
            node.stimulate(stimulus)
        finally:
            self._end_hold()
            node.read_paths()
        status = self.status
        if status.phase != before.phase or status.epoch != before.epoch:
            log.info("epoch", extra={"broker": node.name, "status": str(status)})
        if status.phase == EpochPhase.REJOINING.value != before.phase:
            self._find_old_neighbours(status.epoch)
            for port in list(node.ports.values()):  # They may have been away as well.
                if isinstance(port, LinkPort):
                    self.tell(port)
        return status

    def _find_old_neighbours(self, lane: int) -> None:
        """Ask those that have not called whether the old epoch is over there."""
        node, shape = self._node, self._shape
        addresses = {} if shape is None else shape.addresses
        for neighbour in sorted(self.links(lane).expected):
            if neighbour not in node.ports:
                address = addresses.get(neighbour.name, "")
                opened = OpenLink(neighbour.name, address, LinkKind.PRIMARY, lane, only_asks=True)
                asyncio.get_running_loop().call_soon(node.on_link_effect, opened)

    def forget(self, broker: str) -> list[int]:
        """A broker has left for good; the answer is the lanes on which it is not waited for."""
        if self._node.broker.epochs is not None:
            self._node.broker.epochs.forget(broker)
        lanes = [lane for lane in self._lanes if self.is_in_use(lane)]
        for lane in lanes:
            neighbour = Neighbour(broker, lane)
            port = self._node.ports.get(neighbour)
            if port is not None and not port.is_connected:  # It was killed while it left.
                self._node.remove(port, HAS_LEFT, for_good=True)
            elif port is None and neighbour in self._lanes[lane].expected:
                self._lanes[lane].expect_no_longer(neighbour)
        return lanes

    def on_flipped(self) -> None:
        node, hold = self._node, self._node.hold
        assert hold is not None
        clients = [port for port in node.ports.values() if isinstance(port.hop, LocalClient)]
        hold.gate((port, 0 if node.paths is None else node.paths.count(port)) for port in clients)
        asyncio.get_running_loop().call_soon(self._on_overlay)

    def _on_overlay(self) -> None:
        """The epoch in use may be a mesh now, or not any more: start or end what manages it."""
        node, now_s = self._node, self._node.now_s()
        node.read_paths()
        used = in_use(node.broker.routing)
        if not isinstance(used, MeshRouting):
            node.broker.modules.pop(SoftLinkManager.name, None)
        elif SoftLinkManager.name not in node.broker.modules:
            module = SoftLinkManager(used.settings)
            node.outbox.perform_now(node.broker.start_module(module, now_s))

    def _on_acknowledging(self, port: Port) -> None:
        """A client may have all acknowledged that it published before the flip."""
        if self._node.hold is not None and self._node.hold.is_settled(port):
            asyncio.get_running_loop().call_soon(self._open_gate, port)

    def _open_gate(self, port: Port) -> None:
        if self._node.hold is not None:
            self._node.hold.open_gate(port, self._node)
            self._end_hold()
            self._node.read_paths()

    def _end_hold(self) -> None:
        node, epochs = self._node, self._node.broker.epochs
        is_changing = epochs is not None and epochs.is_changing
        if node.hold is not None and node.hold.is_empty and not is_changing:
            node.hold = node.outbox.on_acknowledging = None

    # -- news ----------------------------------------------------------------------------------

    def tell(self, port: LinkPort) -> None:
        """The first frame on a new stream."""
        epochs = self._node.broker.epochs
        if epochs is not None and (port.hop.lane or epochs.is_changing):
            port.put(encode(self._news(epochs)))
            port.flush()

    def _news(self, epochs: Reshapable) -> EpochNews:
        """Without the epoch before, if nothing of it can be left in the network."""
        since_s = self._node.now_s() - self._dropped_s
        is_recent = since_s < DRAINED_LINKS * self._node.limits.link_s or bool(self._closing)
        return replace(
            epochs.news, is_recent=is_recent, before=epochs.news.before if is_recent else None
        )

    def on_news(self, news: EpochNews, source: Neighbour | None) -> None:
        """A neighbour tells which epochs are in use."""
        try:
            self._follow(news)
        except UsageError as error:
            log.warning("news", extra={"broker": self._node.name, "reason": str(error)})
        port = None if source is None else self._node.ports.get(source)
        if isinstance(port, LinkPort) and port.awaits_news and self._is_expected(port.hop):
            port.awaits_news = port.is_pending = False
            self._node.stimulate(LinkUp(port.hop, port.kind))
            self.links_of(port.hop).on_attached(port, knows_us=False)

    def _is_expected(self, neighbour: Neighbour) -> bool:
        return self.knows(neighbour.lane) and neighbour in self.links_of(neighbour).expected

    def _follow(self, news: EpochNews) -> None:
        status = self.status
        for shape in (news.before, news.now, news.following):
            if shape is None or shape.epoch <= status.epoch:
                continue
            # All have dropped the epoch before the present one, if a later one is committed.
            is_drained = not news.is_recent or news.following is not None
            is_next = shape.follows == status.epoch and not (shape == news.now and is_drained)
            is_flip = shape.epoch == status.next_epoch or (is_next and shape != news.before)
            is_flip = is_flip and not is_outside(shape, self._node.name)
            kind = FlipEpoch if is_flip else AdoptEpoch
            status = self.change(kind(news.change, shape))

    def on_lane_over(self, neighbour: Neighbour, news: EpochNews) -> None:
        """A neighbour that we called has dropped the epoch of the link."""
        self.on_news(news, None)
        if neighbour.lane == self.status.epoch and neighbour not in self._node.ports:
            self.links_of(neighbour).expect_no_longer(neighbour)

    # -- the end of an epoch -------------------------------------------------------------------

    def drop_lane(self, lane: int) -> None:
        """Close the links of an epoch when all is acknowledged; handle what waited for its end."""
        node = self._node
        if lane < self.status.epoch:
            self._dropped_s = node.now_s()
        node.links = self.links(self.status.epoch)
        self._on_overlay()
        if node.hold is not None:
            node.hold.drop_lane(lane, node)
            self._end_hold()
        if lane in self._lanes:
            self._closing[lane] = asyncio.create_task(self._close(lane))

    async def _close(self, lane: int) -> None:
        node = self._node
        is_given_up = lane > self.status.epoch
        while ports := [port for port in node.ports.values() if _lane(port) == lane]:
            for port in ports:
                is_answered = port.acknowledged == port.stream.received
                if is_given_up or (port.stream.is_idle and is_answered and port.is_connected):
                    node.remove(port, EPOCH_OVER)
            await asyncio.sleep(CLOSE_STEP_S)
        self._lanes.pop(lane, None)
        self._begun_s.pop(lane, None)
        self._closing.pop(lane, None)

    def on_removed(self, port: LinkPort, reason: str, *, for_good: bool) -> None:
        """A link is gone."""
        status, lane = self.status, port.hop.lane
        if not self.knows(lane):
            return  # It has called, and we do not know why.
        is_drained = reason.startswith(SAID_GOODBYE) and EPOCH_OVER in reason
        is_over = lane not in (status.epoch, status.next_epoch) or not self.is_in_use(lane)
        if is_over or is_drained:
            if port.was_attached and not port.is_pending:
                self._node.stimulate(LinkDown(port.hop))
            port.decided.set()
        else:
            self.links_of(port.hop).on_removed(port, reason, for_good=for_good)

    def stop(self) -> None:
        for task in self._closing.values():
            task.cancel()


def hello_hop(hello: Hello) -> LocalClient | Neighbour:
    """The caller, as the broker knows it."""
    if hello.role == "client":
        return LocalClient(hello.name)
    return Neighbour(hello.name, hello.lane)


def _lane(port: Port) -> int | None:
    return port.hop.lane if isinstance(port.hop, Neighbour) else None


def _is_committed(status: EpochStatus) -> bool:
    return status.phase in (EpochPhase.REJOINING.value, EpochPhase.HOLDING.value)
