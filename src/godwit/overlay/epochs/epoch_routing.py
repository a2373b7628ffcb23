"""A router that can be given another shape: it holds one routing, and two during a change.

    build    the next epoch is a second routing, on links (lanes) of its own; what clients hold is
             entered there; requests go to both, and are in effect when both say so
    flip     publications of local clients and modules go to the next epoch
    hold     what comes in the next epoch waits, unacknowledged, until the old one has drained
    drop     the old routing is forgotten, and its links are closed

Words    An epoch is a shape of the network with its number, which is the lane of its links.
Claim    Every publication travels in one epoch, and no subscriber gets one of the next epoch before
         those of the old one: nothing is lost, twice or out of order.  Publishers do not stop.
Departs  The papers restart the brokers, or change one link at a time.  This is ours.
Tested   tests/overlay/test_epochs*.py; under traffic: testing/random_reshaping.py.

The two epochs may be of any kind: trees, clusters, meshes (epoch_overlays.py).

E1  `Last` is sent over an old link when this broker has flipped and Last has come over all old
    links whose publications may go on over this one (epoch_drain.py): then nothing follows on it.
E2  The old epoch is dropped when Last was sent to all old neighbours and has come from all.
E3  A publication or sweep of the next epoch waits for that, and whatever follows it on its link.
E4  Client moves are refused meanwhile: a publisher's old and new brokers could use two epochs.
E5  A broker that has restarted is sent Last again, behind what it had not acknowledged.
E6  A sweep that meets the end of the old epoch goes on in the next one, and waits wherever the old
    one has not drained (E3): so it is still behind all publications that it has to follow.
E7  If the old epoch is in clusters, whose brokers do not know the publishers of others and cannot
    refuse them (E4), a publisher that has flipped is paused when the old epoch has drained: then
    all brokers have flipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import assert_never

from godwit.broker.effects import DropLane, EpochFlipped, Send
from godwit.broker.routing import (
    Answer,
    Confirm,
    EpochStatus,
    MovedAway,
    MovedHere,
    Multipath,
    NameTable,
    Place,
    Routing,
    Structured,
)
from godwit.broker.stimuli import (
    AbortEpoch,
    AdoptEpoch,
    BuildEpoch,
    EpochStimulus,
    FlipEpoch,
    Hop,
    LinkKind,
    LocalClient,
    Neighbour,
)
from godwit.content.link_messages import EpochNews, NetworkShape
from godwit.content.messages import (
    AdvertisementId,
    Last,
    Message,
    Paused,
    Publication,
    ResyncDone,
    ResyncScope,
    RoutingMessage,
    Sweep,
    Unadvertisement,
)
from godwit.errors import UsageError
from godwit.overlay.epochs.epoch_confirmations import Confirmations, advertisement_key
from godwit.overlay.epochs.epoch_drain import EpochDrain
from godwit.overlay.epochs.epoch_names import EpochNames
from godwit.overlay.epochs.epoch_overlays import EpochOverlays, MakeRouting
from godwit.overlay.epochs.epoch_paths import EpochPaths
from godwit.overlay.epochs.epoch_phases import EpochEvent, EpochPhase, PhaseMachine
from godwit.overlay.epochs.epoch_places import is_outside, opened_links, without
from godwit.overlay.epochs.epoch_sweeps import can_go_on, go_on_in, stranded
from godwit.overlay.epochs.epoch_views import EpochViews

Answers = list[Answer]

LAST = Last()


class EpochRouting(EpochViews):
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
        super().__init__(overlay(place), place.lane)
        self._place = place
        self._overlays = EpochOverlays(place, overlay, find_overlay)
        self._machine = PhaseMachine()
        self._now_shape: NetworkShape | None = None
        self.is_outside = False
        """Of the epoch in use; also when all that it has as members have left."""
        self._before: NetworkShape | None = None
        self._change = self._now_change = ""
        self._ended = place.lane
        """The latest epoch that was in use, or was given up."""
        self._is_recovering = False
        self._drain = EpochDrain()
        self._sweeps_go_on = True
        """Whether sweeps of the epoch before may go on in this one (E6)."""
        self._pausing: list[tuple[LocalClient, int]] = []
        """Publishers that are paused when the old epoch has drained, and their moves (E7)."""
        self._paths = EpochPaths(self)
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
        self.in_use = self._now
        if self._next is not None and self._machine.phase is EpochPhase.HOLDING:
            self.in_use = self._next
        lanes = {self._lane: self._now}
        if self._next is not None and self._shape is not None:
            lanes[self._shape.epoch] = self._next
        self._paths.read(lanes, self.in_use)
        self._is_single = self._next is None and not self._closing
        self.destinations = self._choose_destinations
        if self._is_single:
            self.destinations = self._now.destinations

    def _choose_destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> Collection[Hop]:
        routing = self.routing_of(last_hop) if isinstance(last_hop, Neighbour) else self.in_use
        if routing is None:
            return ()  # Of a dropped epoch: it was sent again after a failure, and is known here.
        found = routing.destinations(publication, last_hop, hops, now_s)
        if routing is self._now and self._drain.gone:  # It was sent again after a failure.
            return [hop for hop in found if hop not in self._drain.gone]
        return found

    @property
    def paths(self) -> Multipath | None:
        return self._paths if self._paths.is_there else None

    def pause(self, client: LocalClient, move: int) -> Answers:
        if self._machine.phase.is_committed and isinstance(self._now, Structured):  # E7
            self._pausing.append((client, move))
            return []
        routing = self.in_use
        if isinstance(routing, Structured | Multipath):
            return self.passed_on(routing, routing.pause(client, move))
        # Everything the client sent before is handled by now.
        return [Confirm(client, Paused(move=move))]

    @property
    def is_complete(self) -> bool:
        is_used = self._next is None or not self._machine.phase.is_committed
        return self._now.is_complete and (is_used or self._next_is_complete)

    @property
    def _next_is_complete(self) -> bool:
        return self._next is not None and self._next.is_complete

    # -- messages ------------------------------------------------------------------------------

    def handle(self, message: RoutingMessage, last_hop: Hop) -> Answers:
        is_neighbour = type(last_hop) is Neighbour
        if self._is_single and not (is_neighbour and self._is_special(message, last_hop)):
            return list(self._now.handle(message, last_hop))
        if isinstance(last_hop, Neighbour):
            if isinstance(message, Last):
                return self._on_last(last_hop)
            routing = self.routing_of(last_hop)
            if routing is None and isinstance(message, Sweep) and self._sweeps_go_on:  # E6
                answers = go_on_in(self._now, [message], self._place.broker)
                return self.passed_on(self._now, answers)
            if routing is None:
                return []
            return self.passed_on(routing, routing.handle(message, last_hop))
        self._confirmations.request(message)
        return self._all(
            self.passed_on(each, each.handle(message, last_hop)) for each in self.routings()
        )

    def _is_special(self, message: RoutingMessage, last_hop: Hop) -> bool:
        """Whether a message of a neighbour is not for the only routing."""
        return type(message) is Last or getattr(last_hop, "lane", None) != self._lane

    def _all(self, answers: Iterable[Answers]) -> Answers:
        return list(chain.from_iterable(answers))

    def passed_on(self, routing: Routing, answers: Sequence[Answer]) -> Answers:
        """The answers of an epoch, and those of the steps that are possible then."""
        return self._passed(routing, answers) + self._go_on()

    def _passed(self, routing: Routing, answers: Sequence[Answer]) -> Answers:
        """The answers of an epoch, without those that the other one gives, or has given."""
        names = self.names
        if not isinstance(names, EpochNames):
            return list(answers)
        is_next = routing is self._next
        gone = self._drain.gone
        if self._next is not None and gone and can_go_on(self._now):
            going_on = go_on_in(self._next, stranded(answers, gone), self._place.broker)
            answers = [*answers, *going_on]
        answers = names.from_next(answers) if is_next else names.from_now(answers)
        return [answer for answer in answers if self._passes(answer, is_next=is_next)]

    def _passes(self, answer: Answer, *, is_next: bool) -> bool:
        match answer:
            case Send(to=to):
                return to not in self._drain.gone
            case Confirm():
                return self._confirmations.confirm(answer, by_next=is_next)
            case MovedHere():
                return not is_next
            case MovedAway(id=id, publisher=publisher):
                self._confirmations.withdraw(advertisement_key(id))
                for each in self.routings():
                    if isinstance(each, Structured):  # It is not told by the broker over there.
                        each.handle(Unadvertisement(id=id), publisher)
                is_first = id not in self._moved_away
                self._moved_away.add(id)
                return is_first
        return True

    # -- links ---------------------------------------------------------------------------------

    def link_up(self, neighbour: Neighbour, kind: LinkKind) -> Answers:
        if neighbour in self._drain.gone:  # It has restarted.
            self._drain.gone.discard(neighbour)
            return self.link_restarted(neighbour)
        routing = self.routing_of(neighbour)
        return [] if routing is None else self.passed_on(routing, routing.link_up(neighbour, kind))

    def link_down(self, neighbour: Neighbour) -> Answers:
        routing = self.routing_of(neighbour)
        if routing is None:
            self._closing.discard(neighbour)
            self._bind()
            return []
        is_soft = routing.neighbours.get(neighbour) is LinkKind.SOFT  # Others may have flipped.
        if routing is self._next and not self._machine.phase.is_committed and not is_soft:
            return self._give_up(EpochEvent.BREAK)
        if self._next is not None and neighbour in self._drain.heard & self._drain.said:
            self._drain.gone.add(neighbour)  # It has dropped the old epoch.
            return []
        return self.passed_on(routing, routing.link_down(neighbour))

    def link_restarted(self, neighbour: Neighbour) -> Answers:
        routing = self.routing_of(neighbour)
        if routing is None:  # It has nothing to learn from an epoch that is over here.
            done = ResyncDone(scope=ResyncScope.SUBSCRIPTIONS_TOO)
            return [Send(neighbour, done), Send(neighbour, LAST)]
        answers = self.passed_on(routing, routing.link_restarted(neighbour))
        if neighbour in self._drain.said:  # E5
            answers.append(Send(neighbour, LAST))
        return answers

    def recovering(self) -> Answers:
        self._is_recovering = True
        return self._all(self.passed_on(each, each.recovering()) for each in self.routings())

    def clients_returned(self) -> Answers:
        return self._all(self.passed_on(each, each.clients_returned()) for each in self.routings())

    def recovered(self) -> Answers:
        self._is_recovering = False
        return self._all(self.passed_on(each, each.recovered()) for each in self.routings())

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
        """It has left for good: brokers that restart do not wait for it."""
        self._now_shape = without(self._now_shape, broker)
        self._before = without(self._before, broker)
        for each in self.routings():
            if isinstance(each, Structured):
                each.forget(broker)
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
        shape, routing = self._made(shape)
        self._machine.apply(EpochEvent.BUILD)
        return answers + self._begin(change, shape, routing)

    def _made(self, shape: NetworkShape) -> tuple[NetworkShape, Routing]:
        """The shape with its overlay and settings, and a router in it; UsageError if it is bad."""
        shape = self._overlays.completed(shape)
        return shape, self._overlays.routing(shape)

    def _supersede(self, shape: NetworkShape) -> Answers:
        """Give up an older change that is not committed; its coordinator has, or is gone."""
        if self._shape is None:
            return []
        if self._machine.phase.is_committed or shape.epoch <= self._shape.epoch:
            raise UsageError(f"{self._place.broker} is busy with the change {self._change}")
        return self._give_up(EpochEvent.ABORT)

    def _is_same(self, change: str, shape: NetworkShape) -> bool:
        """Whether this was asked before, and is going on or completed."""
        return change == self._change and shape.epoch in (self._lane, self.status.next_epoch)

    def _begin(self, change: str, shape: NetworkShape, routing: Routing) -> Answers:
        lane, self._change, self._shape, self._next = shape.epoch, change, shape, routing
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
        shape, self._now = self._made(shape)
        self._lane = shape.epoch
        self._overlays.use(shape)
        self._end(shape.epoch)
        self._change = self._now_change = change
        self._now_shape = shape
        self.is_outside = is_outside(shape, self._place.broker)
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
        shape, routing = self._made(shape)
        self._machine.apply(EpochEvent.FLIP)
        return answers + self._begin(change, shape, routing)

    def _flip(self) -> Answers:
        self._machine.apply(EpochEvent.FLIP)
        self._bind()
        return self._flipped() + self._go_on()

    def _flipped(self) -> Answers:
        if self._machine.phase is not EpochPhase.HOLDING:
            return []
        old = self._now
        unused = old.want_soft_links(()) if isinstance(old, Multipath) else ()
        return [EpochFlipped(), *unused]

    def _on_last(self, neighbour: Neighbour) -> Answers:
        if neighbour.lane != self._lane:
            return []
        self._drain.heard.add(neighbour)
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
            answers += [Send(neighbour, LAST) for neighbour in self._drain.due(self._now)]
            if self._drain.is_over(self._now):
                answers += self._drop()
        return answers

    @property
    def _has_told(self) -> bool:
        """Whether the present epoch will tell nothing more."""
        return self._now.is_complete or self.is_outside

    def _drop(self) -> Answers:
        """The old epoch has drained (E2)."""
        assert self._next is not None
        assert self._shape is not None
        self._machine.apply(EpochEvent.DRAINED)
        answers: Answers = [DropLane(self._lane), *self._confirmations.end(next_remains=True)]
        self._closing = set(self._now.neighbours) - self._drain.gone
        self._sweeps_go_on = can_go_on(self._now)
        self._overlays.use(self._shape)
        self._before, self._now_shape = self._now_shape, self._shape
        self.is_outside = False
        sweeps = self._now.sweeps
        self._now, self._lane, self._now_change = self._next, self._shape.epoch, self._change
        pausing, self._pausing = self._pausing, []
        self._end(self._lane)
        answers += go_on_in(self._now, sweeps, self._place.broker)
        return answers + self._all(self.pause(*each) for each in pausing)

    def _end(self, epoch: int) -> None:
        """There is one epoch again; another one has a higher number than `epoch`."""
        self._next = self._shape = None
        self._drain = EpochDrain()
        self._ended = max(self._ended, epoch)
        self.names = self._now.names
        self._bind()
