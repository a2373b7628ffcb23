"""A subscriber over HTTP, as an outlet: results leave while it polls for them.

There is no queue.  Between two requests results stay in the data cluster, and
shared_subscriptions.py keeps the position.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from godwit.content.channel_messages import (
    ChannelInEffect,
    ChannelResults,
    ChannelSubscriptionId,
    Position,
)
from godwit.content.messages import Refusal
from godwit.sharing.outlets import Positions
from godwit.sharing.shared_subscriptions import BackEndKey

#: An answer takes one more frame after it has less than this.
ANSWER_BYTES_MAX = 1024 * 1024


@dataclass(slots=True, eq=False)
class HttpSubscription:
    """A subscription of a session."""

    id: ChannelSubscriptionId
    key: BackEndKey
    is_settled: asyncio.Event = field(default_factory=asyncio.Event)
    """In effect, or refused, or over."""

    start: Position | None = None
    """Once it is in effect."""

    refused: str = ""
    """Why it was refused or ended."""

    is_told: bool = False
    """An answer to a poll has said so."""


@dataclass(slots=True, eq=False)
class Poll:
    """A request for results that is being answered."""

    frames: list[ChannelResults] = field(default_factory=list)
    size_bytes: int = 0
    left_out: dict[ChannelSubscriptionId, Position] = field(default_factory=dict)
    """Where results begin that did not fit; they are pulled again by the next request."""

    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    was_replaced: bool = False
    """Another poll has taken its place."""


class HttpSession:
    """An Outlet (outlets.py)."""

    def __init__(self, user: str, token: str) -> None:
        self.user = user
        self.token = token
        self.wanted: dict[ChannelSubscriptionId, HttpSubscription] = {}
        self.told: dict[ChannelSubscriptionId, Position] = {}
        """As far as answers went."""
        self.poll: Poll | None = None
        self.requests = 0
        """That are being answered."""
        self.expiry: asyncio.TimerHandle | None = None
        self.is_over = False

    @property
    def name(self) -> str:
        """At the desk.  No connected client has such a name: admission does not let it in."""
        return f"$http.{self.user}"

    def wanted_as(self, key: BackEndKey) -> HttpSubscription | None:
        same = (each for each in self.wanted.values() if each.key == key and not each.refused)
        return next(same, None)

    def begin_poll(self) -> Poll:
        if self.poll is not None:
            self.poll.was_replaced = True
            self.poll.is_over.set()
        self.poll = Poll()
        if any(each.refused and not each.is_told for each in self.wanted.values()):
            self.poll.is_over.set()  # It ended between two polls.
        return self.poll

    def ended(self) -> dict[ChannelSubscriptionId, str]:
        """Subscriptions that have ended, for the answer to a poll, with reasons."""
        ended = [each for each in self.wanted.values() if each.refused]
        for each in ended:
            each.is_told = True
        return {each.id: each.refused for each in ended}

    def end_poll(self, poll: Poll) -> None:
        if self.poll is poll:
            self.poll = None

    def answered(self, poll: Poll, sent: Positions) -> dict[ChannelSubscriptionId, Position]:
        """How far the answer goes; `sent` is what the desk takes to be sent."""
        positions = {id: poll.left_out.get(id, position) for id, position in sent.items()}
        for id, position in positions.items():
            self.told[id] = max(position, self.told.get(id, position))
        return positions

    def forget(self, id: ChannelSubscriptionId) -> None:
        self.told.pop(id, None)
        wanted = self.wanted.pop(id, None)
        if wanted is not None:
            wanted.is_settled.set()

    def end(self) -> None:
        """End every request that waits."""
        self.is_over = True
        if self.expiry is not None:
            self.expiry.cancel()
        for id in list(self.wanted):
            self.forget(id)
        if self.poll is not None:
            self.poll.is_over.set()

    # -- as an outlet --------------------------------------------------------------------------

    @property
    def can_take(self) -> bool:
        return self.poll is not None and self.poll.size_bytes < ANSWER_BYTES_MAX

    @property
    def can_move(self) -> bool:
        return False

    def tell(self, notice: ChannelInEffect | Refusal) -> None:
        if isinstance(notice, ChannelInEffect):
            wanted = self.wanted.get(notice.id)
            if wanted is not None and wanted.start is None:
                wanted.start = self.told[notice.id] = notice.start
                wanted.is_settled.set()
        else:
            self._on_refusal(ChannelSubscriptionId(notice.about), notice.reason)

    def _on_refusal(self, id: ChannelSubscriptionId, reason: str) -> None:
        wanted = self.wanted.get(id)
        if wanted is None:
            return
        wanted.refused = reason
        wanted.is_settled.set()
        if wanted.start is None:
            self.forget(id)
        elif self.poll is not None:
            self.poll.is_over.set()

    def push(self, results: ChannelResults, size_bytes: int) -> None:
        poll = self.poll
        if poll is None:
            return
        if poll.size_bytes >= ANSWER_BYTES_MAX:
            poll.left_out.setdefault(results.id, (results.execution, results.first))
        else:
            poll.frames.append(results)
            poll.size_bytes += size_bytes

    def flush(self) -> None:
        if self.poll is not None and self.poll.frames:
            self.poll.is_over.set()

    def arrived(self, sent: Positions) -> Positions:
        return {}  # The subscriber sends its positions with each poll.
