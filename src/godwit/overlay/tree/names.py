"""Which session has which name, in the whole network.  Pure.

A client that has chosen its name claims it before it is welcomed.  A claim floods the tree and is
confirmed from the leaves back, as advertisements are: from then on every broker has the direction
of the holder.

    the name is free        claim --> all brokers; confirmed --> granted
    it is held              request --> along the directions --> the broker of the holder, which
                            decides --> answer, back along the way: granted, or denied with a reason
    the holder moves        it claims with a higher attachment, which turns the direction everywhere

A request goes on record nowhere: it carries the brokers that it has passed, for the answer.

Two claims may meet: clients connect at the same time, or a network that was in two parts heals.
Everywhere the one with the higher rank wins, and the other session is told: there is no clock in a
rank, and no two claims have the same.  A take-over has a higher generation than what it ends.

M1  A claim replaces the one that is known if it comes from the same hop, or if its rank is higher.
    Otherwise the sender is put right.
M2  A session of this broker has the incarnation of the claim that is known; another one is ended,
    and its client asks again: it was not decided, as a take-over is, and the other client may be
    gone by now.  If it is not, the answer is final.
M3  If a claim from elsewhere is withdrawn, and this broker has a session of that incarnation, it
    claims the name again: the client wanted to move, and has stayed.
M4  A claim awaits no neighbour that is away.
M5  A broker that has just started, or has a new link, may not know the names of others yet.  A
    client that is new here waits until the neighbours have told theirs, or for the time that the
    network has to answer: otherwise it could get a name that another client has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from godwit.broker.effects import NameContested, NameGranted, NameLost, Send
from godwit.broker.routing import Answer
from godwit.broker.stimuli import (
    Hop,
    LocalClient,
    NameContest,
    NameDecided,
    NameLeft,
    NameStimulus,
    NameWaitOver,
    NameWish,
    Neighbour,
)
from godwit.content.messages import (
    NameAnswer,
    NameClaim,
    NameClaimInEffect,
    NameMessage,
    NameRelease,
    NameRequest,
)

Answers = list[Answer]

#: Brokers that a request passes at most: no path in a tree is longer.
WAY_MAX = 255
#: What a generation rises by when a name is taken from a session.  A client that moves has two
#: sessions; when one of them is ended for this reason, the other one claims the name again (M3),
#: which raises the generation by one.
TAKING = 2


@dataclass(slots=True, eq=False)
class NameEntry:
    claim: NameClaim
    last_hop: Hop
    awaited: set[Neighbour] = field(default_factory=set)
    """Neighbours that have not confirmed it yet."""

    has_turned: bool = False
    """Whether the name has been claimed from another hop."""

    is_in_doubt: bool = False
    """Whether the neighbour that sent it has restarted, and not repeated it yet."""


class WaitingWish(NamedTuple):
    wish: NameWish
    asked: NameClaim
    """The claim that is in its way."""


class Names:
    """The names that are claimed anywhere, as one broker knows them."""

    def __init__(
        self,
        broker: str,
        links: Collection[Neighbour],
        expected: Iterable[Neighbour] = (),
        lane: int = 0,
    ) -> None:
        """`links` are those of the router, and change with them; others are `expected`."""
        self._broker = broker
        self._lane = lane
        self._links = links
        self._away: set[Neighbour] = set()
        self._entries: dict[str, NameEntry] = {}
        self._sessions: dict[str, NameClaim] = {}
        """The claims of clients of this broker."""
        self._waiting: dict[str, WaitingWish] = {}
        """Clients of this broker that wait for the answer to a request."""
        self._untold = set(expected)
        """Neighbours that have not told their names yet."""
        self._held: dict[str, NameWish] = {}
        """Clients of this broker that wait for these (M5)."""

    def __len__(self) -> int:
        return len(self._entries)

    def holder(self, name: str) -> Hop | None:
        """Where the session is that has claimed this name."""
        entry = self._entries.get(name)
        return None if entry is None else entry.last_hop

    # -- clients of this broker ----------------------------------------------------------------

    def sessions(self) -> list[NameClaim]:
        """The claims of clients of this broker that are not elsewhere meanwhile."""
        return [
            claim for claim in self._sessions.values() if self._entries[claim.name].claim == claim
        ]

    def enter(self, claim: NameClaim) -> Answers:
        """A client of this broker has this name, in another epoch: claim it in this one."""
        known = self._entries.get(claim.name)
        if known is not None and known.claim.rank > claim.rank:
            return []  # It has moved, or lost its name: it will be told in the other epoch.
        return self._adopt(claim, LocalClient(claim.name))

    def stimulate(self, stimulus: NameStimulus) -> Answers:
        match stimulus:
            case NameWish():
                return self._on_wish(stimulus)
            case NameWaitOver():
                return self._on_wait_over(stimulus)
            case NameLeft():
                return self._on_left(stimulus)
            case NameDecided():
                return self._on_decided(stimulus)

    def _on_wish(self, wish: NameWish) -> Answers:
        name = wish.client.name
        waiting = self._waiting.get(name)
        if waiting is not None and waiting.wish.incarnation != wish.incarnation:
            return [_refused(wish, self._broker)]
        known = self._entries.get(name)
        if known is None and self._untold and wish.is_first:  # M5
            held = self._held.setdefault(name, wish)
            return [] if held.incarnation == wish.incarnation else [_refused(wish, self._broker)]
        if known is None or known.claim.incarnation == wish.incarnation:
            return self._claim_for(wish)
        return self._ask(wish, known)

    def _release(self) -> Answers:
        """The neighbours may have told all: ask for the names that clients wait for (M5)."""
        if self._untold:
            return []
        held, self._held = self._held, {}
        return [answer for wish in held.values() for answer in self._on_wish(wish)]

    def _ask(self, wish: NameWish, known: NameEntry) -> Answers:
        """Ask the broker of the holder, which decides."""
        self._waiting[wish.client.name] = WaitingWish(wish, known.claim)
        request = NameRequest(
            name=wish.client.name,
            incarnation=wish.incarnation,
            take_over=wish.take_over,
            way=(),
        )
        return self._pass_on(request, known)

    def _claim_for(self, wish: NameWish, generation: int = 0) -> Answers:
        """Claim a name that is free, or the client's own, or that was granted."""
        name = wish.client.name
        self._waiting.pop(name, None)
        known = self._entries.get(name)
        is_own = known is not None and known.claim.incarnation == wish.incarnation
        if known is not None and is_own:
            generation = max(generation, known.claim.generation)
        claim = NameClaim(
            name=name,
            generation=max(generation, wish.generation),
            incarnation=wish.incarnation,
            attachment=wish.attachment,
        )
        if known is not None and not is_own and known.claim.rank > claim.rank:
            return [_lost(wish, _taken(known.claim), is_final=False)]
        answers = self._adopt(claim, wish.client)
        if is_own:  # Whoever knows the name knows it as this client's.
            answers.append(NameGranted(wish.client, claim.incarnation, claim.generation))
        return answers

    def _on_wait_over(self, over: NameWaitOver) -> Answers:
        """A part of the network does not answer in time."""
        name = over.client.name
        waiting, held = self._waiting.get(name), self._held.get(name)
        answers: Answers = []
        if held is not None and held.incarnation == over.incarnation:
            answers += self._claim_for(self._held.pop(name))
        if waiting is None or waiting.wish.incarnation != over.incarnation:
            claim = self._sessions.get(name)
            if claim is None or claim.incarnation != over.incarnation:
                return answers
            return [*answers, NameGranted(over.client, claim.incarnation, claim.generation)]
        wish, asked = waiting
        known = self._entries.get(name)
        if known is None or wish.take_over:
            latest = asked if known is None else known.claim
            return self._claim_for(wish, latest.generation + TAKING)
        del self._waiting[name]
        reason = (
            f"the name {name} belongs to a session at a broker that does not answer just now;"
            " try again later, choose another name, or take it over (take_over=True, --take-over)"
        )
        return [_lost(wish, reason, is_final=False)]

    def _on_left(self, left: NameLeft) -> Answers:
        name, leaving = left.client.name, (left.incarnation, left.attachment)
        waiting = self._waiting.get(name)
        if waiting and (waiting.wish.incarnation, waiting.wish.attachment) == leaving:
            del self._waiting[name]
        held = self._held.get(name)
        if held is not None and (held.incarnation, held.attachment) == leaving:
            del self._held[name]
        claim = self._sessions.get(name)
        if claim is None or (claim.incarnation, claim.attachment) != leaving:
            return []
        del self._sessions[name]
        entry = self._entries[name]
        if entry.last_hop != left.client:  # It is at another broker now.
            return []
        return self._withdraw(entry)

    def _on_decided(self, decided: NameDecided) -> Answers:
        holder, request = decided.contest.holder, decided.contest.request
        known = self._entries.get(request.name)
        is_own = known is not None and known.claim.incarnation == request.incarnation
        if known is not None and not is_own and known.claim.rank > holder.rank:
            return self._pass_on(request, known)  # It has another holder by now, or elsewhere.
        if decided.is_free:
            return self._grant(request)
        return self._deny(request, decided.reason, is_final=decided.is_final)

    # -- messages ------------------------------------------------------------------------------

    def handle(self, message: NameMessage, last_hop: Hop) -> Answers:
        assert isinstance(last_hop, Neighbour), "clients say hello; their brokers claim"
        match message:
            case NameClaim():
                return self._on_claim(message, last_hop)
            case NameClaimInEffect(claim=claim):
                return self._on_claim_in_effect(claim, last_hop)
            case NameRelease(name=name):
                return self._on_release(name, last_hop)
            case NameRequest():
                return self._on_request(message, last_hop)
            case NameAnswer():
                return self._on_answer(message)

    def _on_claim(self, claim: NameClaim, last_hop: Neighbour) -> Answers:
        known = self._entries.get(claim.name)
        if known is not None and known.claim == claim:  # A repetition.
            if known.last_hop == last_hop:
                known.is_in_doubt = False
            return [] if known.awaited else [Send(last_hop, NameClaimInEffect(claim=claim))]
        if known is None or last_hop == known.last_hop or claim.rank > known.claim.rank:  # M1
            return self._adopt(claim, last_hop)
        return [Send(last_hop, known.claim)]

    def _adopt(self, claim: NameClaim, last_hop: Hop) -> Answers:
        """Put a claim into the table: tell all other neighbours, and the session that has lost."""
        name, former = claim.name, self._entries.get(claim.name)
        has_turned = former is not None and (former.has_turned or former.last_hop != last_hop)
        entry = self._entries[name] = NameEntry(claim, last_hop, has_turned=has_turned)
        answers: Answers = []
        own = self._sessions.get(name)
        if isinstance(last_hop, LocalClient):
            self._sessions[name] = claim
        if own is not None and own.incarnation != claim.incarnation:  # M2
            if not isinstance(last_hop, LocalClient):
                del self._sessions[name]
            lost = NameLost(LocalClient(name), own.incarnation, _taken(claim), is_final=False)
            answers.append(lost)
        others = [neighbour for neighbour in self._links if neighbour != last_hop]
        entry.awaited = {neighbour for neighbour in others if neighbour not in self._away}  # M4
        answers += [Send(neighbour, claim) for neighbour in others]
        answers += [] if entry.awaited else self._confirm(entry)
        waiting = self._waiting.get(name)
        if waiting is not None and waiting.wish.incarnation == claim.incarnation:
            answers += self._claim_for(waiting.wish)  # It has got its name elsewhere meanwhile.
        if name in self._held:
            answers += self._on_wish(self._held.pop(name))
        return answers

    def _confirm(self, entry: NameEntry) -> Answers:
        claim = entry.claim
        if isinstance(entry.last_hop, Neighbour):
            return [Send(entry.last_hop, NameClaimInEffect(claim=claim))]
        assert isinstance(entry.last_hop, LocalClient), "modules have names of their own"
        return [NameGranted(entry.last_hop, claim.incarnation, claim.generation)]

    def _on_claim_in_effect(self, claim: NameClaim, last_hop: Neighbour) -> Answers:
        entry = self._entries.get(claim.name)
        if entry is None or entry.claim != claim:
            return []  # There is another claim meanwhile.
        return self._await_no_longer(entry, last_hop)

    def _await_no_longer(self, entry: NameEntry, neighbour: Neighbour) -> Answers:
        if neighbour not in entry.awaited:
            return []
        entry.awaited.remove(neighbour)
        return [] if entry.awaited else self._confirm(entry)

    def _on_release(self, name: str, last_hop: Neighbour) -> Answers:
        entry = self._entries.get(name)
        # A link is FIFO: whatever came from there was claimed before.
        return [] if entry is None or entry.last_hop != last_hop else self._withdraw(entry)

    def _withdraw(self, entry: NameEntry) -> Answers:
        """The session is gone, or what is known of it."""
        claim, last_hop = entry.claim, entry.last_hop
        del self._entries[claim.name]
        # Every neighbour that has it.  If it has turned, that includes its last hop: a claim that
        # was sent there before may arrive only now, and look like a new one.
        told = [n for n in self._links if n != last_hop or entry.has_turned]
        answers: Answers = [Send(neighbour, NameRelease(name=claim.name)) for neighbour in told]
        own = self._sessions.get(claim.name)
        if own is not None:  # M3; above claims of others that take the name for free.
            again = replace(own, generation=max(own.generation, claim.generation) + 1)
            return answers + self._adopt(again, LocalClient(claim.name))
        return answers  # A client that wishes it waits for its answer: others may ask for it, too.

    # -- requests ------------------------------------------------------------------------------

    def _on_request(self, request: NameRequest, last_hop: Neighbour) -> Answers:
        known = self._entries.get(request.name)
        if known is None or known.claim.incarnation == request.incarnation:
            return self._grant(request)
        if known.last_hop == last_hop:  # The name has just turned there.
            if request.take_over:
                return self._grant(request)
            reason = f"another client is claiming the name {request.name} just now; try again"
            return self._deny(request, reason, is_final=False)
        return self._pass_on(request, known)

    def _pass_on(self, request: NameRequest, known: NameEntry) -> Answers:
        """Towards the holder, or to the driver of this broker if it is here."""
        if isinstance(known.last_hop, LocalClient):
            contest = NameContest(known.claim, request, known.has_turned)
            return [NameContested(known.last_hop, contest)]
        assert isinstance(known.last_hop, Neighbour), "modules have names of their own"
        if known.last_hop in self._away or len(request.way) >= WAY_MAX:
            # Its broker has failed, or the network is in parts: the holder is away.
            return self._grant(request)
        return [Send(known.last_hop, replace(request, way=(*request.way, self._broker)))]

    def _grant(self, request: NameRequest) -> Answers:
        answer = NameAnswer(
            name=request.name,
            incarnation=request.incarnation,
            is_free=True,
            reason="",
            way=request.way,
        )
        return self._on_answer(answer)

    def _deny(self, request: NameRequest, reason: str, *, is_final: bool = True) -> Answers:
        answer = NameAnswer(
            name=request.name,
            incarnation=request.incarnation,
            is_free=False,
            reason=reason,
            way=request.way,
            is_final=is_final,
        )
        return self._on_answer(answer)

    def _on_answer(self, answer: NameAnswer) -> Answers:
        if answer.way:
            *way, last = answer.way
            to = Neighbour(last, self._lane)
            return [Send(to, replace(answer, way=tuple(way)))] if to in self._links else []
        waiting = self._waiting.get(answer.name)
        if waiting is None or waiting.wish.incarnation != answer.incarnation:
            return []  # It was answered before, or the caller has hung up.
        wish, asked = waiting
        if not answer.is_free:
            del self._waiting[answer.name]
            return [_lost(wish, answer.reason, is_final=answer.is_final)]
        known = self._entries.get(answer.name)
        if known is None or known.claim == asked or known.claim.incarnation == wish.incarnation:
            return self._claim_for(wish, asked.generation + TAKING)
        return self._ask(wish, known)  # Another client was faster, or the holder is elsewhere.

    # -- links ---------------------------------------------------------------------------------

    def link_up(self, neighbour: Neighbour) -> Answers:
        """Send a new neighbour the names that are not in its own direction."""
        self._untold.add(neighbour)
        return self._tell(neighbour)

    def _tell(self, neighbour: Neighbour) -> Answers:
        self._away.discard(neighbour)
        return [Send(neighbour, entry.claim) for entry in self._from_others(neighbour)]

    def _from_others(self, neighbour: Neighbour) -> Iterator[NameEntry]:
        return (entry for entry in self._entries.values() if entry.last_hop != neighbour)

    def link_restarted(self, neighbour: Neighbour) -> Answers:
        for entry in self._entries.values():
            entry.is_in_doubt |= entry.last_hop == neighbour
        return self._tell(neighbour)

    def resynced(self, neighbour: Neighbour) -> Answers:
        """A neighbour has sent all: what one that restarted did not repeat is withdrawn."""
        entries = list(self._entries.values())
        gone = [e for e in entries if e.is_in_doubt and e.last_hop == neighbour]
        answers = [answer for entry in gone for answer in self._withdraw(entry)]
        self._untold.discard(neighbour)
        return answers + self._release()

    def link_away(self, neighbour: Neighbour, *, is_away: bool) -> Answers:
        if not is_away:
            self._away.discard(neighbour)
            return []
        self._away.add(neighbour)
        answers = self._stop_awaiting(neighbour)
        for name, waiting in list(self._waiting.items()):
            known = self._entries.get(name)
            if known is not None and known.last_hop == neighbour:
                answers += self._claim_for(waiting.wish, known.claim.generation + TAKING)
        return answers

    def link_down(self, neighbour: Neighbour) -> Answers:
        """The neighbour is gone from `links`."""
        self._away.discard(neighbour)
        answers = self._stop_awaiting(neighbour)
        gone = [e for e in self._entries.values() if e.last_hop == neighbour]
        answers += [answer for entry in gone for answer in self._withdraw(entry)]
        self._untold.discard(neighbour)
        return answers + self._release()

    def _stop_awaiting(self, neighbour: Neighbour) -> Answers:
        entries = list(self._entries.values())
        return [answer for e in entries for answer in self._await_no_longer(e, neighbour)]

    # -- invariants ----------------------------------------------------------------------------

    def check(self) -> None:
        """Assert M2, and that nothing points to a neighbour that is gone."""
        for name, own in self._sessions.items():
            entry = self._entries.get(name)
            assert entry is not None, f"M2: {name} has a session and no claim"
            assert entry.claim.incarnation == own.incarnation, f"M2: {name} has another claim"
        for name, entry in self._entries.items():
            if isinstance(entry.last_hop, Neighbour):
                assert entry.last_hop in self._links, f"{name} is in the direction of no link"
            else:
                assert self._sessions.get(name) == entry.claim, f"M2: {name} has no session here"


def _lost(wish: NameWish, reason: str, *, is_final: bool = True) -> NameLost:
    return NameLost(wish.client, wish.incarnation, reason, is_final)


def _refused(wish: NameWish, broker: str) -> NameLost:
    name = wish.client.name
    reason = f"another client {name} is connecting to {broker} just now; try again"
    return _lost(wish, reason, is_final=False)


def _taken(claim: NameClaim) -> str:
    return (
        f"another client has taken the name {claim.name} over (incarnation {claim.incarnation}):"
        " a name belongs to one session in the network"
    )
