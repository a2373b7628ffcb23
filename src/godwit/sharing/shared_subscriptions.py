"""Channel subscriptions at one broker: shared, and served from positions.

    client --> FrontEnd --+
    client --> FrontEnd --+--> BackEnd --> subscription in the data cluster
                          one for all with the same channel and arguments (FE and BE of the paper)

Results are kept by the data cluster, not here.  All a front-end subscription has is a position: how
far its client has been sent what there is.  When a notice says that there is more, it is pulled
once for all clients that can take it, and pushed to each from its position on.  One that is away
or slow stays at its position, and is served later; it costs no memory and delays no other.

D1  What a front-end subscription is sent goes on exactly where it was, or where its client says.
D2  There is at most one pull at a time for a back-end subscription.
D3  A back-end subscription is there as long as a front-end one needs it.
D4  A client that cannot take results costs nothing until `wake`.
D5  A front-end subscription ends with its channel.  It does not go on with another channel of the
    same name, even if it was away when the one was dropped and the other created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import msgspec

from godwit.api.datacluster_api import ChannelDropped, ExecutionRows, Granted, Pulled, PullFrom
from godwit.content.channel_messages import (
    ChannelInEffect,
    ChannelResults,
    ChannelSubscription,
    ChannelSubscriptionId,
    Position,
    was_dropped,
)
from godwit.content.messages import Refusal
from godwit.content.values import Value

#: Rows of one execution that do not fit into one frame are sent in several.
FRAME_ROWS_BYTES = 262_144

FrontEndKey: TypeAlias = tuple[str, ChannelSubscriptionId]


class BackEndKey(NamedTuple):
    """Subscriptions with the same are one."""

    channel: str
    """Names are not case-sensitive."""

    arguments: str
    """In an order, so that equal ones are equal."""


@dataclass(slots=True, eq=False)
class FrontEnd:
    client: str
    id: ChannelSubscriptionId
    position: Position | None
    """None is: from now on, whenever that is."""

    acknowledged: Position | None = None
    """None as long as it is not in effect."""


@dataclass(slots=True, eq=False)
class BackEnd:
    key: BackEndKey
    channel: str
    arguments: dict[str, Value]
    id: int | None = None
    ready: Position = (0, 0)
    """There is nothing beyond, as far as we were told."""

    fronts: dict[FrontEndKey, FrontEnd] = field(default_factory=dict)
    is_pulled: bool = False
    first: Position = (0, 0)
    """Earlier positions are of another channel, which was dropped (D5)."""


class Ask(NamedTuple):
    """Subscribe in the data cluster."""

    key: BackEndKey
    channel: str
    arguments: dict[str, Value]


class End(NamedTuple):
    """Unsubscribe, or release it: its subscriber may continue at another broker."""

    id: int
    may_come_back: bool


class Tell(NamedTuple):
    client: str
    notice: ChannelInEffect | Refusal


class Push(NamedTuple):
    client: str
    results: ChannelResults
    size_bytes: int


Order: TypeAlias = Ask | End | Tell | Push


class SharedSubscriptions:
    def __init__(self) -> None:
        self._backs: dict[BackEndKey, BackEnd] = {}
        self._by_id: dict[int, BackEnd] = {}
        self._keys: dict[FrontEndKey, BackEndKey] = {}
        self._of_client: dict[str, dict[ChannelSubscriptionId, None]] = {}
        self._behind: dict[BackEndKey, None] = {}
        """Of which there may be more than some front-end subscription has been sent."""
        self._asleep: dict[str, dict[BackEndKey, None]] = {}
        """Clients that could not take results, and of which subscriptions."""
        self._tidied: dict[BackEndKey, None] = {}
        """Where a subscriber has acknowledged something."""
        self._asked = 0
        self._early: dict[int, int] = {}
        """Executions that were announced before the data cluster's answer to an Ask."""
        self._dropped: dict[str, int] = {}
        """Channels whose drop was announced before that answer, and their last subscriptions."""

    # -- who is there --------------------------------------------------------------------------

    @property
    def front_ends(self) -> int:
        return len(self._keys)

    @property
    def back_ends(self) -> int:
        return len(self._backs)

    @property
    def sharing_ratio(self) -> float:
        """Front-end subscriptions for one back-end subscription."""
        return self.front_ends / self.back_ends if self._backs else 0.0

    def holds(self, client: str) -> bool:
        return client in self._of_client

    def subscribers(self) -> dict[str, list[int]]:
        """Which back-end subscriptions each client has a part in."""
        found: dict[str, list[int]] = {}
        for client, ids in self._of_client.items():
            backs = (self._backs[self._keys[client, id]].id for id in ids)
            found[client] = [back for back in backs if back is not None]
        return found

    # -- clients -------------------------------------------------------------------------------

    def subscribe(self, client: str, request: ChannelSubscription) -> list[Order]:
        front_key = (client, request.id)
        if front_key in self._keys:
            return [Tell(client, Refusal(about=request.id, reason="is there already"))]
        key = back_end_key(request.channel, request.arguments)
        back = self._backs.get(key)
        is_new = back is None
        if back is None:
            back = self._backs[key] = BackEnd(key, request.channel, request.arguments)
        front = back.fronts[front_key] = FrontEnd(client, request.id, request.start)
        self._keys[front_key] = key
        self._of_client.setdefault(client, {})[request.id] = None
        if is_new:
            return [self._ask(back)]
        return [] if back.id is None else self._begin(back, front)

    def _ask(self, back: BackEnd) -> Ask:
        self._asked += 1
        return Ask(back.key, back.channel, back.arguments)

    def _begin(self, back: BackEnd, front: FrontEnd) -> list[Order]:
        """From here on all results will be sent, unless the position is of another channel (D5)."""
        if front.position is not None and (0, 0) < front.position < back.first:
            return self._refuse(front, was_dropped(back.channel))
        if front.position is None:
            front.position = back.ready
        if front.acknowledged is None:
            front.acknowledged = front.position
        if front.position < back.ready:
            self._behind[back.key] = None
        return [Tell(front.client, ChannelInEffect(id=front.id, start=front.position))]

    def unsubscribe(self, client: str, id: ChannelSubscriptionId) -> list[Order]:
        return self._end((client, id), may_come_back=False)

    def leave(self, client: str) -> list[Order]:
        """A client has left, or moved to another broker, where it may continue."""
        self._asleep.pop(client, None)
        ids = list(self._of_client.get(client, ()))
        return [order for id in ids for order in self._end((client, id), may_come_back=True)]

    def _end(self, front_key: FrontEndKey, *, may_come_back: bool) -> list[Order]:
        key = self._keys.pop(front_key, None)
        if key is None:
            return []
        client, id = front_key
        del self._of_client[client][id]
        if not self._of_client[client]:
            del self._of_client[client]
        back = self._backs[key]
        del back.fronts[front_key]
        if back.fronts:
            return []
        del self._backs[key]  # D3
        self._behind.pop(key, None)
        if back.id is None:
            return []  # `granted` will release it.
        del self._by_id[back.id]
        return [End(back.id, may_come_back)]

    # -- the data cluster ----------------------------------------------------------------------

    def granted(self, key: BackEndKey, granted: Granted) -> list[Order]:
        """The data cluster has answered an Ask."""
        self._asked -= 1
        early = -1 if granted.id is None else self._early.pop(granted.id, -1)
        dropped_through = self._dropped.get(key.channel, -1)
        if not self._asked:
            self._early.clear()
            self._dropped.clear()
        back = self._backs.get(key)
        if granted.id is None:
            return [] if back is None else self._refuse_all(back, granted.error)
        if granted.id <= dropped_through:  # The notice of the drop was faster than this answer.
            return [] if back is None else self._refuse_all(back, was_dropped(back.channel))
        known = self._by_id.get(granted.id)
        if back is None:
            return [] if known is not None else [End(granted.id, may_come_back=False)]
        if known is not None:
            return self._merge(back, known)
        back.id, back.ready = granted.id, max(back.ready, granted.start, (early + 1, 0))
        back.first = granted.first
        self._by_id[granted.id] = back
        for front in back.fronts.values():
            front.position = front.position or granted.start
        return [order for front in list(back.fronts.values()) for order in self._begin(back, front)]

    def _merge(self, back: BackEnd, known: BackEnd) -> list[Order]:
        """The data cluster takes for the same what was written differently, as 1 and 1.0."""
        del self._backs[back.key]
        for front_key, front in back.fronts.items():
            self._keys[front_key] = known.key
            known.fronts[front_key] = front
        return [order for front in back.fronts.values() for order in self._begin(known, front)]

    def channel_dropped(self, notice: ChannelDropped) -> list[Order]:
        """A channel was dropped, and every subscription to it ends (D5)."""
        channel = notice.channel.lower()
        if self._asked:
            self._dropped[channel] = max(notice.through, self._dropped.get(channel, -1))
        return [
            order
            for back in list(self._backs.values())
            if back.key.channel == channel and back.id is not None and back.id <= notice.through
            for order in self._refuse_all(back, was_dropped(notice.channel))
        ]

    def _refuse_all(self, back: BackEnd, reason: str) -> list[Order]:
        return [
            order for front in list(back.fronts.values()) for order in self._refuse(front, reason)
        ]

    def _refuse(self, front: FrontEnd, reason: str) -> list[Order]:
        ended = self._end((front.client, front.id), may_come_back=False)
        return [*ended, Tell(front.client, Refusal(about=front.id, reason=reason))]

    def ready(self, ids: Iterable[int], execution: int) -> None:
        """There are results of this execution."""
        for id in ids:
            back = self._by_id.get(id)
            if back is None:
                if self._asked:
                    self._early[id] = max(execution, self._early.get(id, -1))
            elif back.ready <= (execution, 0):
                back.ready = (execution + 1, 0)
                self._behind[back.key] = None

    def pulls(self, can_take: Callable[[str], bool], limit: int) -> list[PullFrom]:
        """What to ask for now: for those that are behind, and whose clients can take it."""
        wanted: list[PullFrom] = []
        for key in list(self._behind):
            back = self._backs[key]
            if len(wanted) >= limit or back.is_pulled or back.id is None:  # D2
                continue
            lagging = list(self._lagging(back))
            starts = [front.position for front in lagging if can_take(front.client)]
            if starts:
                back.is_pulled = True
                wanted.append(PullFrom(id=back.id, start=min(starts)))
                continue
            del self._behind[key]
            for front in lagging:  # D4
                self._asleep.setdefault(front.client, {})[key] = None
        return wanted

    def wake(self, client: str) -> bool:
        """The client may be able to take something again; is there anything?"""
        keys = [key for key in self._asleep.pop(client, ()) if key in self._backs]
        self._behind.update(dict.fromkeys(keys))
        return bool(keys)

    @staticmethod
    def _lagging(back: BackEnd) -> Iterable[_Begun]:
        for front in back.fronts.values():
            if front.position is not None and front.position < back.ready:
                yield _Begun(front.client, front.position)

    def may_pull_again(self, pulls: Iterable[PullFrom]) -> None:
        """The data cluster has answered, or will not."""
        for pull in pulls:
            back = self._by_id.get(pull.id)
            if back is not None:
                back.is_pulled = False

    def unknown(self, id: int) -> list[Order]:
        """The data cluster has forgotten a subscription: ask for it again."""
        back = self._by_id.pop(id, None)
        if back is None:
            return []
        back.id, back.is_pulled = None, False
        self._behind.pop(back.key, None)
        return [self._ask(back)]

    def pulled(self, pulled: Pulled, can_take: Callable[[str], bool]) -> list[Push]:
        """Results have come in: push them to all that can take them, each from its position."""
        back = self._by_id.get(pulled.id)
        if back is None:
            return []
        pushes: list[Push] = []
        for front in back.fronts.values():
            position = front.position
            if position is None or not pulled.start <= position < pulled.end:  # D1
                continue
            if can_take(front.client):
                pushes += _pushes(front, position, pulled.results)
                front.position = pulled.end
        return pushes

    # -- how far clients are -------------------------------------------------------------------

    def positions(self, client: str) -> dict[ChannelSubscriptionId, Position]:
        """How far the client has been sent what there is."""
        found = {id: self._front(client, id).position for id in self._of_client.get(client, ())}
        return {id: position for id, position in found.items() if position is not None}

    def acknowledge(self, client: str, positions: Mapping[ChannelSubscriptionId, Position]) -> None:
        """The client has everything before these positions."""
        for id, position in positions.items():
            if (client, id) in self._keys:
                front = self._front(client, id)
                if front.acknowledged is not None and front.acknowledged < position:
                    front.acknowledged = position
                    self._tidied[self._keys[client, id]] = None

    def begin_again(self, client: str, positions: Mapping[ChannelSubscriptionId, Position]) -> None:
        """The client has everything before these positions; what it was sent beyond is lost."""
        self.acknowledge(client, positions)
        self.wake(client)
        for id in self._of_client.get(client, ()):
            front, back = self._front(client, id), self._backs[self._keys[client, id]]
            if front.acknowledged is not None:
                front.position = front.acknowledged
                if back.id is not None and front.position < back.ready:
                    self._behind[back.key] = None

    def _front(self, client: str, id: ChannelSubscriptionId) -> FrontEnd:
        return self._backs[self._keys[client, id]].fronts[client, id]

    def done(self, limit: int) -> list[PullFrom]:
        """Of back-end subscriptions, the position before which no subscriber here needs anything.

        Of those only where it has changed since the last time.
        """
        done: list[PullFrom] = []
        while self._tidied and len(done) < limit:
            key, _ = self._tidied.popitem()
            back = self._backs.get(key)
            if back is not None and back.id is not None:
                fronts = back.fronts.values()
                start = min(f.acknowledged for f in fronts if f.acknowledged is not None)
                done.append(PullFrom(id=back.id, start=start))
        return done


class _Begun(NamedTuple):
    client: str
    position: Position


def back_end_key(channel: str, arguments: dict[str, Value]) -> BackEndKey:
    """Equal for equal arguments, in whatever order they were given."""
    return BackEndKey(channel.lower(), msgspec.json.encode(arguments, order="sorted").decode())


def _pushes(
    front: FrontEnd, position: Position, results: Iterable[ExecutionRows]
) -> Iterable[Push]:
    for rows in results:
        first, size = rows.first, len(rows.rows)
        if (rows.execution, first + size) <= position:
            continue
        seen = max(position[1] - first, 0) if position[0] == rows.execution else 0
        # Rows of one channel are of similar size.
        step = max(1, size * FRAME_ROWS_BYTES // max(rows.size_bytes, 1))
        for begin in range(seen, size, step):
            part = rows.rows[begin : begin + step]
            frame = ChannelResults(
                id=front.id,
                execution=rows.execution,
                first=first + begin,
                rows=part,
                executed_s=rows.executed_s,
            )
            yield Push(front.client, frame, rows.size_bytes * len(part) // max(size, 1))
