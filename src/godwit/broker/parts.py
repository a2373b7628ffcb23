"""Parts of the network that are missing: who is told of them, and when they are back.

    a link is given up    PartLost floods; every broker tells its clients that there is a gap
    the link is back      PartCheck goes to every broker behind it; PartChecked comes back
    all have answered     PartReturned floods; every broker tells its clients that the gap is over

A gap begins before anything that was lost is acknowledged: a driver writes PartLost, and what it
tells clients, ahead of all that is queued, and acknowledges afterwards.  It ends when publications
reach the part again: PartCheck travels behind the advertisements that were sent over the new link,
and PartChecked behind the subscriptions that answer them (the echo algorithm), and PartReturned
behind those.

The other side may not have noticed: a broker that was asleep finds that its neighbour does not know
it any more.  So the side that gave up says so over the new link, by naming itself, and the other
side tells its own clients, and checks in its turn.

G1  A broker has a record of each part that is missing, by (lost broker, broker that gave it up,
    time), and the neighbour in whose direction it is.
G2  After a neighbour has come back or restarted, what is missing in its direction is in doubt.  It
    is over when the neighbour has answered a check and not repeated it.
G3  A broker whose own tables are not complete answers no check, and ends no gap.
G4  A broker that hears of itself as lost can be reached in another way.  It checks in the direction
    from which it hears that, and ends the gap: the broker that gave it up may never be its
    neighbour again.  One that was known by its address only does not hear of itself: the broker
    that gave it up checks, when it learns that there is another way to it.
G5  In an overlay with cross links a broker that is lost over one link may be there over others,
    and publications that need that link are missing all the same.  The gap ends when that link is
    back, and not before (G4 does not hold).  A check over a cross link is for its other end only.

Departs  The papers have no failures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, assert_never

from godwit.broker.effects import NotifyAll, Send
from godwit.broker.routing import Routing, Structured, in_use
from godwit.broker.stimuli import LinkKind, Loss, Neighbour
from godwit.content.messages import (
    PUBLISHERS_COUNTED_MAX,
    GapNotice,
    PartCheck,
    PartChecked,
    PartLost,
    PartMessage,
    PartReturned,
)

Answers: TypeAlias = list[Send | NotifyAll]


class PartKey(NamedTuple):
    """What identifies a part that is missing (G1)."""

    broker: str
    by: str
    since_s: float


@dataclass(slots=True)
class MissingPart:
    message: PartLost
    direction: Neighbour
    in_doubt: bool = False


@dataclass(slots=True)
class _Check:
    """A check that has passed here, or begun here."""

    back: Neighbour | None
    """Who is answered when all have answered; None if it has begun here."""

    awaited: set[Neighbour]


class Parts:
    """What one broker knows of missing parts."""

    def __init__(
        self,
        broker: str,
        links: Iterable[Neighbour] = (),
        *,
        cross_links: Iterable[Neighbour] | None = None,
        tables_are_complete: Callable[[], bool] = lambda: True,
    ) -> None:
        """`links` are up at the start: primary ones, which are a tree.

        `cross_links` are there as well in an overlay that has such; then each link is missed by
        itself (G5).
        """
        self.missing: dict[PartKey, MissingPart] = {}
        self.gaps: Counter[str] = Counter()
        """Gaps since the start, by the broker that was lost."""
        self._broker = broker
        self._tables_are_complete = tables_are_complete
        self._is_recovering = False
        self._links = set(links)
        self._cross_links = set(cross_links or ())
        self._is_tree = cross_links is None
        self._checks: dict[PartCheck, _Check] = {}
        self._held: dict[PartCheck, Neighbour] = {}
        """Checks that wait until the tables of this broker are complete (G3)."""
        self._checked: set[Neighbour] = set()
        """Neighbours that have answered a check meanwhile (G3)."""
        self._number = 0

    def notices(self, client: str) -> list[GapNotice]:
        """What a client is told that connects now."""
        parts = [part.message for part in self.missing.values()]
        return [_notify(part).notice_for(client) for part in parts]

    # -- links ---------------------------------------------------------------------------------

    def link_up(self, neighbour: Neighbour, *, is_cross: bool = False) -> Answers:
        """Neither side knows the other: one of them may have given up the other."""
        (self._cross_links if is_cross else self._links).add(neighbour)
        answers: Answers = []
        for key, part in self.missing.items():
            if part.direction == neighbour and key.by == self._broker:
                answers.append(Send(neighbour, _given_up(part.message, self._broker)))
        answers += [*self._tell_all(neighbour), *self._doubt(neighbour)]
        return answers + self.go_on()

    def link_restarted(self, neighbour: Neighbour) -> Answers:
        """The neighbour has lost its state; this side has all that it had."""
        for check, state in list(self._checks.items()):
            if neighbour in (state.back, _only(state)):
                del self._checks[check]
        resumed = [check for check, state in self._checks.items() if neighbour in state.awaited]
        again: Answers = [Send(neighbour, check) for check in resumed]
        return [*self._tell_all(neighbour), *again, *self._doubt(neighbour)]

    def link_down(self, neighbour: Neighbour, loss: Loss | None) -> Answers:
        """A neighbour is given up, or has left."""
        if neighbour not in self._links | self._cross_links:
            return []
        self._links.discard(neighbour)
        self._cross_links.discard(neighbour)
        self._checked.discard(neighbour)
        self._held = {check: back for check, back in self._held.items() if back != neighbour}
        answers: Answers = [] if loss is None else self._lose(neighbour, loss)
        for check, state in list(self._checks.items()):
            if state.back == neighbour or (state.back is None and neighbour in state.awaited):
                del self._checks[check]
            else:
                answers += self._on_checked(check, neighbour)
        return answers

    def give_up(
        self, neighbour: Neighbour, loss: Loss | None, known_as: Neighbour | None
    ) -> Answers:
        """A neighbour that was expected has not come; or it was known by its address only."""
        if loss is not None:
            return self._lose(neighbour, loss)
        if known_as is None:
            return []
        for part in self.missing.values():
            if part.direction == neighbour:
                part.direction = known_as
        return self._doubt(known_as)

    def reach_over(self, direction: Neighbour, address: Neighbour) -> Answers:
        """A broker that was missed by its address is in this direction (G4)."""
        if direction not in self._links:
            return []  # It is away; the link with the broker is tried again.
        for part in self.missing.values():
            if part.direction == address:
                part.direction, part.in_doubt = direction, True
        return self._check(direction)

    def recovering(self) -> None:
        self._is_recovering = True

    def end_all(self) -> list[NotifyAll]:
        """These links are not used any more: the network has another shape."""
        return [_notify(part.message, is_over=True) for part in self.missing.values()]

    def recovered(self, missing: Mapping[Neighbour, Loss]) -> Answers:
        """The time to recover is over; the tables lack what these neighbours have."""
        self._is_recovering = False
        answers: Answers = []
        for neighbour, loss in missing.items():
            self._checked.discard(neighbour)
            answers += [*self._lose(neighbour, loss), *self._doubt(neighbour)]
        return answers + self.go_on()

    @property
    def _is_complete(self) -> bool:
        return not self._is_recovering and self._tables_are_complete()

    def go_on(self) -> Answers:
        """The tables may be complete now: do what waited for that (G3)."""
        answers: Answers = []
        if (self._held or self._checked) and self._is_complete:
            checked, self._checked = self._checked, set()
            for neighbour in sorted(checked):
                answers += self._end_doubts(neighbour)
            held, self._held = self._held, {}
            for check, back in held.items():
                answers += self._on_check(check, back)
        return answers

    def _lose(self, neighbour: Neighbour, loss: Loss) -> Answers:
        counts = Counter(loss.publications)
        lost = PartLost(
            broker=neighbour.name,
            by=self._broker,
            since_s=loss.since_s,
            reason=loss.reason,
            lost=counts.total(),
            lost_by=dict(counts.most_common(PUBLISHERS_COUNTED_MAX)),
        )
        return self._enter(lost, neighbour)

    def _tell_all(self, neighbour: Neighbour) -> Answers:
        """Send a neighbour the parts that are not in its own direction."""
        if neighbour in self._cross_links:
            return []
        parts = self.missing.values()
        return [Send(neighbour, part.message) for part in parts if part.direction != neighbour]

    def _doubt(self, neighbour: Neighbour) -> Answers:
        """Check whether what is missing in the direction of a neighbour is back (G2)."""
        doubtful = self._behind(neighbour)
        for part in doubtful:
            part.in_doubt = True
        return self._check(neighbour) if doubtful else []

    def _behind(self, neighbour: Neighbour) -> list[MissingPart]:
        """Parts in the direction of a neighbour; or it was lost elsewhere, and is here now."""
        return [
            part
            for part in self.missing.values()
            if part.direction == neighbour
            or (self._is_tree and part.message.broker == neighbour.name)
        ]

    def _check(self, neighbour: Neighbour) -> Answers:
        self._number += 1
        check = PartCheck(origin=self._broker, number=self._number)
        self._checks[check] = _Check(None, {neighbour})
        return [Send(neighbour, check)]

    # -- messages ------------------------------------------------------------------------------

    def handle(self, message: PartMessage, neighbour: Neighbour) -> Answers:
        match message:
            case PartLost():
                return self._on_lost(message, neighbour)
            case PartReturned():
                key = PartKey(message.broker, message.by, message.since_s)
                return self._end(key, neighbour) if key in self.missing else []
            case PartCheck():
                if self._is_complete:
                    return self._on_check(message, neighbour)
                self._held[message] = neighbour  # G3
                return []
            case PartChecked(origin=origin, number=number):
                return self._on_checked(PartCheck(origin=origin, number=number), neighbour)
            case _:
                assert_never(message)

    def _on_lost(self, message: PartLost, neighbour: Neighbour) -> Answers:
        known = self.missing.get(_key(message))
        answers: Answers = []
        if known is not None:
            known.in_doubt &= known.direction != neighbour  # It repeats what is still missing.
        else:
            answers = self._enter(message, neighbour)
            if message.broker == neighbour.name:  # It had given up this broker.
                answers += self._doubt(neighbour)
        if message.broker == self._broker and self._is_tree:  # G4
            self.missing[_key(message)].in_doubt = True
            answers += self._check(neighbour)
        return answers

    def _enter(self, lost: PartLost, direction: Neighbour) -> Answers:
        self.missing[_key(lost)] = MissingPart(lost, direction)
        self.gaps[lost.broker] += 1
        return [*self._to_others(lost, direction), _notify(lost)]

    def _end(self, key: PartKey, last_hop: Neighbour | None = None) -> Answers:
        part = self.missing.pop(key)
        returned = PartReturned(broker=key.broker, by=key.by, since_s=key.since_s)
        return [*self._to_others(returned, last_hop), _notify(part.message, is_over=True)]

    def _to_others(
        self, message: PartLost | PartReturned, last_hop: Neighbour | None
    ) -> list[Send]:
        return [Send(link, message) for link in sorted(self._links) if link != last_hop]

    def _on_check(self, check: PartCheck, back: Neighbour) -> Answers:
        others = set() if back in self._cross_links else self._links - {back}
        if not others:
            return [Send(back, _checked(check))]
        self._checks[check] = _Check(back, others)
        return [Send(link, check) for link in sorted(others)]

    def _on_checked(self, check: PartCheck, neighbour: Neighbour) -> Answers:
        state = self._checks.get(check)
        if state is None:
            return []  # Its link was given up or restarted meanwhile.
        state.awaited.discard(neighbour)
        if state.awaited:
            return []
        del self._checks[check]
        if state.back is not None:
            return [Send(state.back, _checked(check))]
        if not self._is_complete:  # G3
            self._checked.add(neighbour)
            return []
        return self._end_doubts(neighbour)

    def _end_doubts(self, neighbour: Neighbour) -> Answers:
        answers: Answers = []
        for part in self._behind(neighbour):
            if part.in_doubt:
                answers += self._end(_key(part.message))
        return answers


def _key(message: PartLost) -> PartKey:
    return PartKey(message.broker, message.by, message.since_s)


def _only(state: _Check) -> Neighbour | None:
    """The neighbour that a check of this broker is about."""
    return next(iter(state.awaited)) if state.back is None else None


def _checked(check: PartCheck) -> PartChecked:
    return PartChecked(origin=check.origin, number=check.number)


def _given_up(part: PartLost, broker: str) -> PartLost:
    """What the other side is told: this side was missing there."""
    reason = f"{broker} had given up {part.broker}: {part.reason}"
    return PartLost(broker=broker, by=broker, since_s=part.since_s, reason=reason, lost=part.lost)


def _notify(part: PartLost, *, is_over: bool = False) -> NotifyAll:
    notice = GapNotice(
        broker=part.broker,
        by=part.by,
        since_s=part.since_s,
        reason=part.reason,
        lost=part.lost,
        is_over=is_over,
    )
    return NotifyAll(notice, part.lost_by)


def parts_of(name: str, routing: Routing) -> Parts:
    """The parts of a network with these links."""
    by_kind: dict[LinkKind, list[Neighbour]] = {kind: [] for kind in LinkKind}
    for link, kind in routing.neighbours.items():
        by_kind[kind].append(link)
    return Parts(
        name,
        by_kind[LinkKind.PRIMARY],
        cross_links=by_kind[LinkKind.CROSS] if isinstance(in_use(routing), Structured) else None,
        tables_are_complete=lambda: routing.is_complete,
    )
