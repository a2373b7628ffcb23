"""A router that can be given another shape: it holds one routing, and two during a change.

    build    the next epoch is a second routing, on links (lanes) of its own; what clients hold is
             entered there; requests go to both, and are in effect when both say so
    flip     publications of local clients and modules go to the next epoch
    hold     what comes in the next epoch waits, unacknowledged, until the old one has drained
    drop     the old routing is forgotten, and its links are closed

Words    An epoch is a shape of the network with its number, which is the lane of its links.
Claim    Every publication travels in one epoch, and no subscriber gets one of the next epoch before
         those of the old one: nothing is lost, nothing comes twice, publisher order is kept.
         Publishers do not stop.
Departs  The papers restart the brokers, or change one link at a time.  This is ours.
Tested   tests/overlay/test_epochs.py; random trees to random trees: testing/random_reshaping.py.

E1  `Last` is sent over an old link when this broker has flipped and Last has come over all its
    other old links: then nothing follows on this one, from any broker behind this end.
E2  The old epoch is dropped when Last was sent to all old neighbours and has come from all.
E3  A publication or sweep of the next epoch waits for that, and whatever follows it on its link.
E4  Client moves are refused meanwhile: a publisher's new broker could still use the old epoch
    while its old broker uses the next one.
E5  A broker that has restarted is sent Last again, behind what it had not acknowledged.
E6  A sweep that meets the end of the old epoch goes on in the next one, and waits wherever the old
    one has not drained (E3): so it is still behind all publications that it has to follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias, assert_never

from godwit.broker.effects import DropLane, EpochFlipped, Send
from godwit.broker.routing import (
    Answer,
    Confirm,
    EpochStatus,
    Holding,
    MovedAway,
    MovedHere,
    NameTable,
    Place,
    Routing,
    Tables,
)
from godwit.broker.stimuli import (
    AbortEpoch,
    AdoptEpoch,
    BuildEpoch,
    EpochStimulus,
    FlipEpoch,
    Hop,
    LinkKind,
    Neighbour,
)
from godwit.content.link_messages import EpochNews, NetworkShape
from godwit.content.messages import (
    AdvertisementId,
    Last,
    Message,
    Publication,
    ResyncDone,
    ResyncScope,
    RoutingMessage,
    Sweep,
)
from godwit.errors import UsageError
from godwit.overlay.epochs.epoch_confirmations import Confirmations, advertisement_key
from godwit.overlay.epochs.epoch_names import EpochNames
from godwit.overlay.epochs.epoch_phases import EpochEvent, EpochPhase, PhaseMachine
from godwit.overlay.epochs.epoch_places import is_outside, opened_links, place_in, without
from godwit.overlay.epochs.epoch_sweeps import go_on_in, stranded

Answers = list[Answer]
#: Makes the router of one epoch.
MakeRouting: TypeAlias = Callable[[Place], Routing]

LAST = Last()


class EpochRouting:
    destinations: Callable[[Publication, Hop, int, float], Collection[Hop]]
    """That of the routing in use, while there is only one: it costs nothing more."""
    names: NameTable

    def __init__(
        self,
        place: Place,
        overlay: MakeRouting,
        find_overlay: Callable[[str], MakeRouting] | None = None,
    ) -> None:
        """`find_overlay` returns an overlay by its name, for shapes that have another."""
        self._place = place
        self._overlay = overlay
        self._find_overlay = find_overlay
        self._machine = PhaseMachine()
        self._lane = place.lane
        self._now = overlay(place)
        self._next: Routing | None = None
        self._now_shape: NetworkShape | None = None
        self._before: NetworkShape | None = None
        self._shape: NetworkShape | None = None
        """Of the next epoch."""
        self._change = self._now_change = ""
        self._ended = place.lane
        """The latest epoch that was in use, or was given up."""
        self._is_recovering = False
        self._heard: set[Neighbour] = set()
        """Old neighbours that have sent Last."""
        self._said: set[Neighbour] = set()
        """Old neighbours that were sent Last."""
        self._gone: set[Neighbour] = set()
        """Old neighbours that have dropped the old epoch."""
        self._closing: set[Neighbour] = set()
        """Links of a dropped epoch that are not closed yet."""
        self._confirmations = Confirmations()
        self._moved_away: set[AdvertisementId] = set()
        """Advertisements of publishers that one of the two epochs knows to have moved away."""
        self.names = self._now.names
        self._bind()

    # -- what a router is asked ----------------------------------------------------------------

    def _bind(self) -> None:
        """Ask the routing that is in use directly, if there is nothing to choose."""
        self._used: Routing = self._now
        if self._next is not None and self._machine.phase is EpochPhase.HOLDING:
            self._used = self._next
        self._is_single = self._next is None and not self._closing
        self.destinations = self._choose_destinations
        if self._is_single:
            self.destinations = self._now.destinations

    def _choose_destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> Collection[Hop]:
        routing = self._of(last_hop) if isinstance(last_hop, Neighbour) else self._used
        if routing is None:
            return ()  # Of a dropped epoch: it was sent again after a failure, and is known here.
        found = routing.destinations(publication, last_hop, hops, now_s)
        if routing is self._now and self._gone:  # It was sent again after a failure.
            return [hop for hop in found if hop not in self._gone]
        return found

    def _of(self, neighbour: Neighbour) -> Routing | None:
        """The routing of a link; None if its epoch is over."""
        if neighbour.lane == self._lane:
            return self._now
        if self._shape is not None and neighbour.lane == self._shape.epoch:
            return self._next
        return None

    @property
    def neighbours(self) -> Mapping[Neighbour, LinkKind]:
        return self._used.neighbours

    @property
    def subscription_count(self) -> int:
        return self._used.subscription_count

    @property
    def advertisement_count(self) -> int:
        return self._used.advertisement_count

    @property
    def is_complete(self) -> bool:
        is_used = self._next is None or not self._machine.phase.is_committed
        return self._now.is_complete and (is_used or self._next_is_complete)

    @property
    def _next_is_complete(self) -> bool:
        return self._next is not None and self._next.is_complete

    def tables(self) -> Tables:
        return self._used.tables()

    def holdings(self) -> Iterable[Holding]:
        return self._used.holdings()

    def publisher(self, advertisement: AdvertisementId) -> Hop | None:
        return self._now.publisher(advertisement)

    @property
    def sweeps(self) -> Sequence[Sweep]:
        return self._now.sweeps

    def check(self) -> None:
        for routing in self._routings():
            routing.check()

    def _routings(self) -> list[Routing]:
        return [self._now] if self._next is None else [self._now, self._next]

    # -- messages ------------------------------------------------------------------------------

    def handle(self, message: RoutingMessage, last_hop: Hop) -> Answers:
        is_neighbour = type(last_hop) is Neighbour
        if self._is_single and not (is_neighbour and self._is_special(message, last_hop)):
            return list(self._now.handle(message, last_hop))
        if isinstance(last_hop, Neighbour):
            if isinstance(message, Last):
                return self._on_last(last_hop)
            routing = self._of(last_hop)
            if routing is None and isinstance(message, Sweep):  # E6
                routing = self._now
            return [] if routing is None else self._from(routing, routing.handle(message, last_hop))
        self._confirmations.request(message)
        return self._all(
            self._from(each, each.handle(message, last_hop)) for each in self._routings()
        )

    def _is_special(self, message: RoutingMessage, last_hop: Hop) -> bool:
        """Whether a message of a neighbour is not for the only routing."""
        return type(message) is Last or getattr(last_hop, "lane", None) != self._lane

    def _all(self, answers: Iterable[Answers]) -> Answers:
        return list(chain.from_iterable(answers))

    def _from(self, routing: Routing, answers: Sequence[Answer]) -> Answers:
        """What an epoch answers, and the steps that are possible then."""
        return self._passed(routing, answers) + self._go_on()

    def _passed(self, routing: Routing, answers: Sequence[Answer]) -> Answers:
        """What an epoch answers, without what the other one has still to say, or has said."""
        names = self.names
        if not isinstance(names, EpochNames):
            return list(answers)
        is_next = routing is self._next
        if self._next is not None and self._gone:
            answers = [*answers, *go_on_in(self._next, stranded(answers, self._gone))]
        answers = names.from_next(answers) if is_next else names.from_now(answers)
        return [answer for answer in answers if self._passes(answer, is_next=is_next)]

    def _passes(self, answer: Answer, *, is_next: bool) -> bool:
        match answer:
            case Send(to=to):
                return to not in self._gone
            case Confirm():
                return self._confirmations.confirm(answer, by_next=is_next)
            case MovedHere():
                return not is_next
            case MovedAway(id=id):
                self._confirmations.withdraw(advertisement_key(id))
                is_first = id not in self._moved_away
                self._moved_away.add(id)
                return is_first
        return True

    # -- links ---------------------------------------------------------------------------------

    def link_up(self, neighbour: Neighbour, kind: LinkKind) -> Answers:
        if neighbour in self._gone:  # It has restarted.
            self._gone.discard(neighbour)
            return self.link_restarted(neighbour)
        routing = self._of(neighbour)
        return [] if routing is None else self._from(routing, routing.link_up(neighbour, kind))

    def link_down(self, neighbour: Neighbour) -> Answers:
        routing = self._of(neighbour)
        if routing is None:
            self._closing.discard(neighbour)
            self._bind()
            return []
        if routing is self._next and not self._machine.phase.is_committed:
            return self._give_up(EpochEvent.BREAK)
        if self._next is not None and neighbour in self._heard & self._said:
            self._gone.add(neighbour)  # It has dropped the old epoch.
            return []
        return self._from(routing, routing.link_down(neighbour))

    def link_restarted(self, neighbour: Neighbour) -> Answers:
        routing = self._of(neighbour)
        if routing is None:  # It has nothing to learn from an epoch that is over here.
            done = ResyncDone(scope=ResyncScope.SUBSCRIPTIONS_TOO)
            return [Send(neighbour, done), Send(neighbour, LAST)]
        answers = self._from(routing, routing.link_restarted(neighbour))
        if neighbour in self._said:  # E5
            answers.append(Send(neighbour, LAST))
        return answers

    def recovering(self) -> Answers:
        self._is_recovering = True
        return self._all(self._from(each, each.recovering()) for each in self._routings())

    def clients_returned(self) -> Answers:
        return self._all(self._from(each, each.clients_returned()) for each in self._routings())

    def recovered(self) -> Answers:
        self._is_recovering = False
        return self._all(self._from(each, each.recovered()) for each in self._routings())

    # -- a change ------------------------------------------------------------------------------

    @property
    def is_changing(self) -> bool:
        return self._next is not None

    @property
    def status(self) -> EpochStatus:
        return EpochStatus(
            epoch=self._lane,
            phase=self._machine.phase.value,
            change=self._change,
            next_epoch=None if self._shape is None else self._shape.epoch,
            ended=self._ended,
        )

    @property
    def shape(self) -> NetworkShape | None:
        return self._shape

    @property
    def news(self) -> EpochNews:
        if not self._machine.phase.is_committed:
            return EpochNews(change=self._now_change, now=self._now_shape, before=self._before)
        return EpochNews(change=self._change, now=self._now_shape, following=self._shape)

    def forget(self, broker: str) -> None:
        """It has left for good: those who restart do not wait for it."""
        self._now_shape = without(self._now_shape, broker)
        self._before = without(self._before, broker)
        if self._machine.phase.is_committed:  # This broker rejoins, later than it has left.
            self._shape = without(self._shape, broker)

    def starts_hold(self, message: Message, last_hop: Hop) -> bool:
        """Whether this message waits for the end of the old epoch (E3)."""
        if self._shape is None or not isinstance(last_hop, Neighbour):
            return False
        return last_hop.lane == self._shape.epoch and isinstance(message, Publication | Sweep)

    def change_epoch(self, stimulus: EpochStimulus) -> Answers:
        match stimulus:
            case BuildEpoch(change=change, shape=shape):
                return self._build(change, shape)
            case FlipEpoch(change=change, shape=shape):
                return self._commit(change, shape)
            case AbortEpoch(change=change, epoch=epoch):
                return self._abort(change, epoch)
            case AdoptEpoch(change=change, shape=shape):
                return self._adopt(change, shape)
        assert_never(stimulus)

    def _build(self, change: str, shape: NetworkShape) -> Answers:
        if self._is_same(change, shape):
            return []
        broker = self._place.broker
        if shape.epoch <= self._ended:
            raise UsageError(f"epoch {shape.epoch} is over: {broker} is at {self._lane}")
        if is_outside(shape, broker):
            raise UsageError(f"{broker} is not part of epoch {shape.epoch}")
        answers = self._supersede(shape)
        if self._is_recovering or not self._has_told or self._closing:
            raise UsageError(f"{broker} does not know the whole network at present")
        self._machine.apply(EpochEvent.BUILD)
        return answers + self._begin(change, shape)

    def _supersede(self, shape: NetworkShape) -> Answers:
        """Give up an uncommitted change that is older: its coordinator has, or is gone."""
        if self._shape is None:
            return []
        if self._machine.phase.is_committed or shape.epoch <= self._shape.epoch:
            raise UsageError(f"{self._place.broker} is busy with the change {self._change}")
        return self._give_up(EpochEvent.ABORT)

    def _is_same(self, change: str, shape: NetworkShape) -> bool:
        """Whether this was asked before, and is going on or completed."""
        return change == self._change and shape.epoch in (self._lane, self.status.next_epoch)

    def _begin(self, change: str, shape: NetworkShape) -> Answers:
        lane, self._change, self._shape = shape.epoch, change, shape
        routing = self._next = self._overlay_of(shape)(place_in(shape, self._place))
        self._confirmations = Confirmations()
        self._moved_away = set()
        self.names = EpochNames(self._now.names, routing.names, lane)
        self._bind()
        answers: Answers = [*routing.recovering()] if self._is_recovering else []
        answers += self._enter_holdings(routing)
        return answers + opened_links(shape, self._place) + self._go_on()

    def _adopt(self, change: str, shape: NetworkShape) -> Answers:
        """Take this epoch for the one in use: nothing that was in effect here still is."""
        if shape.epoch <= self._lane:
            return []
        answers = self._supersede(shape)
        old, lane = self._now, self._lane
        self._now, self._lane = self._overlay_of(shape)(place_in(shape, self._place)), shape.epoch
        self._end(shape.epoch)
        self._change = self._now_change = change
        self._now_shape = shape
        answers += [DropLane(lane), *(self._now.recovering() if self._is_recovering else ())]
        for holding in old.holdings():
            answers += self._now.handle(holding.message, holding.hop)
        for claim in old.names.sessions():
            answers += self._now.names.enter(claim)
        return answers + opened_links(shape, self._place)

    def _enter_holdings(self, routing: Routing) -> Answers:
        answers: Answers = []
        for holding in list(self._now.holdings()):
            self._confirmations.enter(holding)
            answers += self._passed(routing, routing.handle(holding.message, holding.hop))
        for claim in self._now.names.sessions():
            answers += self._passed(routing, routing.names.enter(claim))
        return answers

    def _overlay_of(self, shape: NetworkShape) -> MakeRouting:
        if shape.overlay and self._find_overlay is not None:
            self._overlay = self._find_overlay(shape.overlay)
        return self._overlay

    def _abort(self, change: str, epoch: int) -> Answers:
        if change != self._change or self._next is None:
            self._ended = max(self._ended, epoch)  # The request to build it may come late.
            return []
        if self._machine.phase.is_committed:
            raise UsageError(f"the change {change} is committed: it can only go forward")
        return self._give_up(EpochEvent.ABORT)

    def _give_up(self, event: EpochEvent) -> Answers:
        """Back to the present epoch alone."""
        assert self._shape is not None
        self._machine.apply(event)
        lane, self._change = self._shape.epoch, self._now_change
        answers: Answers = [DropLane(lane), *self._confirmations.end(next_remains=False)]
        self._end(lane)
        return answers

    def _commit(self, change: str, shape: NetworkShape) -> Answers:
        if shape.epoch <= self._lane or self._machine.phase.is_committed:
            return []
        if self._next is not None and change == self._change:
            return self._flip()
        answers = self._supersede(shape)  # It has lost this change in a failure.
        self._machine.apply(EpochEvent.FLIP)
        return answers + self._begin(change, shape)

    def _flip(self) -> Answers:
        self._machine.apply(EpochEvent.FLIP)
        self._bind()
        return self._flipped() + self._go_on()

    def _flipped(self) -> Answers:
        return [EpochFlipped()] if self._machine.phase is EpochPhase.HOLDING else []

    def _on_last(self, neighbour: Neighbour) -> Answers:
        if neighbour.lane != self._lane:
            return []
        self._heard.add(neighbour)
        if self._next is None:  # Lost in a failure: the coordinator, or a neighbour, will tell.
            return []
        return self._go_on() if self._machine.phase.is_committed else self._flip()

    def _go_on(self) -> Answers:
        """Take the steps that are possible now."""
        answers: Answers = []
        # When it rejoins, others have what its clients held, and wait for its Last to answer.
        is_owing = self._confirmations.owes and self._machine.phase is not EpochPhase.REJOINING
        if self._next_is_complete and not is_owing and self._machine.permits(EpochEvent.TOLD):
            self._machine.apply(EpochEvent.TOLD)
            self._bind()
            answers += self._flipped()
        if self._machine.phase is EpochPhase.HOLDING and self._has_told:
            old = self._now.neighbours
            for neighbour in sorted(old):
                if neighbour not in self._said and self._has_all_but(neighbour, old):  # E1
                    self._said.add(neighbour)
                    answers.append(Send(neighbour, LAST))
            if self._heard >= old.keys() and self._said >= old.keys():
                answers += self._drop()
        return answers

    @property
    def _has_told(self) -> bool:
        """Whether the present epoch will tell nothing more."""
        return self._now.is_complete or is_outside(self._now_shape, self._place.broker)

    def _has_all_but(self, neighbour: Neighbour, old: Collection[Neighbour]) -> bool:
        """Whether all other old neighbours have sent Last."""
        return all(each in self._heard for each in old if each != neighbour)

    def _drop(self) -> Answers:
        """The old epoch has drained (E2)."""
        assert self._next is not None
        assert self._shape is not None
        self._machine.apply(EpochEvent.DRAINED)
        answers: Answers = [DropLane(self._lane), *self._confirmations.end(next_remains=True)]
        self._closing = set(self._now.neighbours) - self._gone
        self._before, self._now_shape = self._now_shape, self._shape
        sweeps = self._now.sweeps
        self._now, self._lane, self._now_change = self._next, self._shape.epoch, self._change
        self._end(self._lane)
        return answers + go_on_in(self._now, sweeps)

    def _end(self, epoch: int) -> None:
        """There is one epoch again; another one has a higher number than `epoch`."""
        self._next = self._shape = None
        self._heard, self._said, self._gone = set(), set(), set()
        self._ended = max(self._ended, epoch)
        self.names = self._now.names
        self._bind()
