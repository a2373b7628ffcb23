"""The broker: one content-based router, as a state machine that does no I/O.

    stimulus --> Broker.handle(stimulus, now_s=...) --> [effect, effect, ...]

A broker takes one stimulus at a time and returns the effects that the driver performs.
(Publications may come in runs, `handle_run`, with the same effects and less overhead.)  It never
opens a socket, reads a clock or draws a random number, so the simulator and the network runtime
drive this class, not two copies of it.

    from a client or module   sessions.py admits it --> routing, or a Refusal
    from a neighbour          routing
    routing messages          Routing.handle decides (overlay/)
    publications              Routing.destinations decides, the core makes the copies
    parts that are missing    parts.py: clients are told of gaps
    modules                   see what passes (modules.py), submit messages, and exchange letters,
                              which no router sees

Read next: stimuli.py (input), effects.py (output), overlay/tree/tree_routing.py.
Not here:  bytes (protocol/), queues and time (the driver), who should move (policies/).

R1  A message never leaves by the hop it came in on.
R2  A publication goes at most once to each hop, however many filters it matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, assert_never

from godwit.broker.delays import Delays
from godwit.broker.effects import (
    CloseLink,
    Decision,
    Deliver,
    DropLane,
    Effect,
    EpochFlipped,
    NameEffect,
    Notify,
    OpenLink,
    Ping,
    Report,
    Send,
    SetTimer,
    Submit,
)
from godwit.broker.meters import Meters
from godwit.broker.modules import (
    AskForPings,
    AskToMove,
    BrokerView,
    PolicyModule,
    Request,
    Timer,
    ToNeighbour,
)
from godwit.broker.parts import Parts
from godwit.broker.routing import Answer, MovedAway, MovedHere, Reshapable, Routing, Structured
from godwit.broker.sessions import Refused, Sessions
from godwit.broker.stimuli import (
    AbortEpoch,
    AdoptEpoch,
    BuildEpoch,
    ClientArrived,
    ClientLeft,
    ClientsReturned,
    EpochStimulus,
    FlipEpoch,
    Hop,
    LinkAway,
    LinkDown,
    LinkGivenUp,
    LinkKind,
    LinkRestarted,
    LinkUp,
    LocalClient,
    Loss,
    Module,
    NameDecided,
    NameLeft,
    NameWaitOver,
    NameWish,
    Neighbour,
    OperatorCommand,
    Pinged,
    Received,
    Recovered,
    Recovering,
    Started,
    Stimulus,
    TimerFired,
)
from godwit.content.messages import (
    Advertisement,
    AdvertisementInEffect,
    Depart,
    Letter,
    Message,
    MoveTo,
    PartCheck,
    PartChecked,
    PartLost,
    PartReturned,
    Pause,
    Paused,
    Publication,
    Refusal,
    ResyncDone,
    RoutingMessage,
    Subscription,
    Sweep,
    Swept,
    Unsubscription,
)
from godwit.errors import UsageError

T = TypeVar("T")


class Broker:
    """One broker.  `routing` decides where messages go; `modules` watch and propose."""

    def __init__(
        self,
        name: str,
        *,
        routing: Routing,
        modules: Sequence[PolicyModule] = (),
        meters: Meters | None = None,
        codec_checks_values: bool = False,
        address: str = "",
    ) -> None:
        """`codec_checks_values` if messages come through a decoder that has checked their types.

        `address` is where clients reach the broker: for modules that send clients elsewhere.
        """
        self.name = name
        self.address = address
        self.routing = routing
        self.meters = meters or Meters(output_bandwidth_bytes_s=float("inf"))
        self.delays = Delays()
        self.modules: dict[str, PolicyModule] = {}
        self.parts = _parts(name, routing)
        """Of the epoch in use."""
        self._parts_by_lane: dict[int, Parts] = {}
        """Of other epochs, during a change of the network's shape."""
        self.epochs = routing if isinstance(routing, Reshapable) else None
        """The router, if the network can change its shape."""
        self.structure = routing if isinstance(routing, Structured) else None
        """The router, if its links follow from a structure."""
        self._lane = 0 if self.epochs is None else self.epochs.status.epoch
        self.sessions = Sessions(name, codec_checks_values=codec_checks_values)
        self.install(modules)
        self.memory_utilisation: Callable[[], float] = lambda: 0.0
        """Used memory over available memory; the driver sets it if it knows."""

    def install(self, modules: Sequence[PolicyModule]) -> None:
        """Add modules to a broker without any; `Started` starts them."""
        if self.modules:
            raise UsageError(f"{self.name} has modules already; install all of them at once")
        self.modules = {module.name: module for module in modules}
        if len(self.modules) != len(modules):
            names = ", ".join(module.name for module in modules)
            raise UsageError(f"two modules of {self.name} have the same name: {names}")
        self.sessions.taggers = {module.name: module.tag for module in modules if module.tags}

    def handle(self, stimulus: Stimulus, *, now_s: float) -> list[Effect]:
        """Process one stimulus: the only way to change the state of a broker."""
        if type(stimulus) is Received:  # By far the most frequent.
            message, hop = stimulus.message, stimulus.last_hop
            if type(hop) is not Neighbour:
                return self._on_request(message, hop, now_s)
            if type(message) is Publication:
                return self._on_publication(message, hop, stimulus.hops, now_s)
            if type(message) is Letter:
                return self._on_letter(message, hop, now_s)
            if isinstance(message, PartLost | PartReturned | PartCheck | PartChecked):
                return [*self._parts_of(hop).handle(message, hop)]
            assert not isinstance(message, Depart | Pause), "brokers do not move like that"
            return self._on_routing_message(message, hop, now_s)
        match stimulus:
            case TimerFired(module=module, name=name):
                return self._perform(module, self.modules[module].on_timer(name, now_s))
            case Started():
                return self._on_start(now_s)
            case LinkUp(neighbour=neighbour, kind=kind):
                return self._on_link_up(neighbour, kind, now_s)
            case LinkDown(neighbour=neighbour, loss=loss):
                return self._on_link_down(neighbour, loss, now_s)
            case LinkGivenUp(neighbour=neighbour, loss=loss, known_as=known_as):
                parts = self._parts_of(neighbour)
                told = parts.give_up(neighbour, loss, known_as)
                effects = self._performed(self.routing.link_down(neighbour), now_s)
                return [*told, *effects, *parts.go_on()]
            case LinkRestarted(neighbour=neighbour):
                effects = self._performed(self.routing.link_restarted(neighbour), now_s)
                return [*effects, *self._parts_of(neighbour).link_restarted(neighbour)]
            case Recovering():
                self.parts.recovering()
                return self._performed(self.routing.recovering(), now_s)
            case ClientsReturned():
                return self._performed(self.routing.clients_returned(), now_s)
            case Recovered(missing=missing):
                effects = self._performed(self.routing.recovered(), now_s)
                return [*effects, *self.parts.recovered(missing)]
            case ClientLeft(client=client):
                return self._on_client_left(client, now_s)
            case ClientArrived(client=client, session=session):
                return self._on_arrived(client, session, now_s)
            case LinkAway(neighbour=neighbour, is_away=is_away):
                return self._performed(
                    self.routing.names.link_away(neighbour, is_away=is_away), now_s
                )
            case NameWish() | NameWaitOver() | NameLeft() | NameDecided():
                return self._performed(self.routing.names.stimulate(stimulus), now_s)
            case Pinged(module=module, client=pinging, round_trips_s=found):
                return self._perform(module, self.modules[module].on_pinged(pinging, found, now_s))
            case OperatorCommand(module=module, command=command):
                return self._perform(module, self._module(module).on_command(command, now_s))
            case BuildEpoch() | FlipEpoch() | AbortEpoch() | AdoptEpoch():
                return self._on_epoch_stimulus(stimulus, now_s)
            case _:
                assert_never(stimulus)

    def handle_run(
        self,
        run: Iterable[tuple[Publication, int, T]],
        last_hop: LocalClient | Neighbour,
        *,
        now_s: float,
    ) -> Iterator[tuple[list[Effect], T]]:
        """As `handle` for consecutive publications of one peer.

        A publication comes with the links it has crossed, and an object that is returned with its
        effects.  It is handled when the effects of the one before it were taken.
        """
        if type(last_hop) is Neighbour:
            for publication, hops, beside in run:
                yield self._on_publication(publication, last_hop, hops, now_s), beside
            return
        assert type(last_hop) is LocalClient
        admit = self.sessions.admit_publication
        session = self.sessions.of(last_hop)
        for publication, _, beside in run:
            try:
                admitted = admit(publication, session, last_hop, now_s)
            except Refused as refused:
                yield self._refuse(publication, last_hop, str(refused)), beside
            else:
                yield self._on_publication(admitted, last_hop, 0, now_s), beside

    def _on_link_up(self, neighbour: Neighbour, kind: LinkKind, now_s: float) -> list[Effect]:
        effects = self._performed(self.routing.link_up(neighbour, kind), now_s)
        # Behind the tables: a check says that they have arrived.
        kind = self.routing.neighbours.get(neighbour, kind)
        if kind is LinkKind.SOFT:
            return effects
        is_cross = kind is LinkKind.CROSS
        return [*effects, *self._parts_of(neighbour).link_up(neighbour, is_cross=is_cross)]

    def _on_link_down(self, neighbour: Neighbour, loss: Loss | None, now_s: float) -> list[Effect]:
        parts = self._parts_of(neighbour)
        told = parts.link_down(neighbour, loss)
        effects = self._performed(self.routing.link_down(neighbour), now_s)
        return [*told, *effects, *parts.go_on()]

    # -- the network changes its shape ---------------------------------------------------------

    def _parts_of(self, neighbour: Neighbour) -> Parts:
        """What is missing in the epoch of a link."""
        if neighbour.lane == self._lane:
            return self.parts
        parts = self._parts_by_lane.get(neighbour.lane)
        if parts is None:
            routing = self.routing
            parts = Parts(self.name, tables_are_complete=lambda: routing.is_complete)
            self._parts_by_lane[neighbour.lane] = parts
        return parts

    def _on_epoch_stimulus(self, stimulus: EpochStimulus, now_s: float) -> list[Effect]:
        if self.epochs is None:
            raise UsageError(f"the overlay of {self.name} cannot change its shape")
        if isinstance(stimulus, BuildEpoch) and self.parts.missing:
            missing = ", ".join(sorted({key.broker for key in self.parts.missing}))
            raise UsageError(f"parts of the network are missing: {missing}")
        return self._performed(self.epochs.change_epoch(stimulus), now_s)

    def _on_lane_dropped(self, lane: int) -> list[Effect]:
        """An epoch is over, and with it the gaps in it: nothing travels there any more."""
        if lane != self._lane:
            self._parts_by_lane.pop(lane, None)
            return []
        assert self.epochs is not None
        old, used = self.parts, self.epochs.status.epoch
        self.parts = self._parts_of(Neighbour(self.name, used))
        self._parts_by_lane.pop(used, None)
        self._lane = used
        return [*old.end_all()]

    def _why_not_now(self, message: Message, hop: LocalClient | Module) -> str | None:
        """Why a client cannot move at present (E4 in overlay/epochs/epoch_routing.py)."""
        if self.epochs is None or not self.epochs.is_changing:
            return None
        is_move = isinstance(message, Sweep)
        if isinstance(message, Advertisement) and not self.sessions.has_had(message.id, hop):
            is_move = self.routing.publisher(message.id) not in (None, hop)
        return "the network changes its shape just now; try again" if is_move else None

    def _on_start(self, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for name, module in self.modules.items():
            owner = self.sessions.owner(Module(name))
            effects += self._perform(name, module.start(BrokerView(self, owner), now_s))
        return effects

    def _on_request(
        self, message: Message, hop: LocalClient | Module, now_s: float
    ) -> list[Effect]:
        """Process a message of a client or module."""
        if self.modules and type(message) is Advertisement and type(hop) is LocalClient:
            for module in self.modules.values():
                reason = module.refuses(message, hop.name)
                if reason is not None:
                    return self._refuse(message, hop, reason)
        reason = self._why_not_now(message, hop)
        if reason is not None:
            return self._refuse(message, hop, reason)
        try:
            admitted = self.sessions.admit(message, hop, now_s)
        except Refused as refused:
            return self._refuse(message, hop, str(refused))
        if type(admitted) is Publication:
            return self._on_publication(admitted, hop, 0, now_s)
        if isinstance(admitted, Pause):
            return self._on_pause(admitted.move, hop, now_s)
        effects = self._on_routing_message(admitted, hop, now_s)
        if isinstance(admitted, Subscription | Unsubscription) and type(hop) is LocalClient:
            filter = admitted.filter if isinstance(admitted, Subscription) else None
            for name, module in self.modules.items():
                told = module.on_subscription(hop.name, admitted.id, filter, now_s)
                effects += self._perform(name, told)
        return effects

    def _on_pause(self, move: int, hop: LocalClient | Module, now_s: float) -> list[Effect]:
        if not isinstance(hop, LocalClient):
            return []
        if self.structure is not None:
            return self._performed(self.structure.pause(hop, move), now_s)
        # Everything the client sent before is handled by now.
        return [Notify(hop, Paused(move=move))]

    def _refuse(self, message: Message, hop: LocalClient | Module, reason: str) -> list[Effect]:
        # A module is our own code: a refusal is a bug.
        assert isinstance(hop, LocalClient), f"{hop} submitted what the broker refuses: {reason}"
        if isinstance(message, Publication):
            about = f"{message.publisher}#{message.sequence}"
        else:
            about = getattr(message, "id", type(message).__name__)
        return [Notify(hop, Refusal(about=about, reason=reason))]

    def _on_client_left(self, client: LocalClient, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for withdrawal in self.sessions.leave(client):
            effects += self._on_routing_message(withdrawal, client, now_s)
        return effects + self._on_departed(client, now_s)

    def _on_departed(self, publisher: Hop, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for name, module in self.modules.items():
            effects += self._perform(name, module.on_departed(publisher.name, now_s))
        return effects

    def _on_arrived(self, client: LocalClient, session: str, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for name, module in self.modules.items():
            effects += self._perform(name, module.on_arrived(client.name, session, now_s))
        return effects

    def _on_publisher_arrived(self, publisher: Hop, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for name, module in self.modules.items():
            effects += self._perform(name, module.on_publisher_arrived(publisher.name, now_s))
        return effects

    def _on_letter(self, letter: Letter, neighbour: Neighbour, now_s: float) -> list[Effect]:
        module = self.modules.get(letter.module)
        if module is None:
            return []  # A policy need not run everywhere; its letters have deadlines.
        return self._perform(module.name, module.on_letter(letter.body, neighbour, now_s))

    def _on_routing_message(self, message: RoutingMessage, hop: Hop, now_s: float) -> list[Effect]:
        effects = self._performed(self.routing.handle(message, hop), now_s)
        return [*effects, *self.parts.go_on()] if isinstance(message, ResyncDone) else effects

    def _performed(self, answers: Iterable[Answer], now_s: float) -> list[Effect]:
        """Turn the answers of the router into effects."""
        effects: list[Effect] = []
        for effect in answers:
            if isinstance(effect, Send | OpenLink | CloseLink | EpochFlipped | NameEffect):
                effects.append(effect)
                continue
            if isinstance(effect, DropLane):
                effects += [*self._on_lane_dropped(effect.lane), effect]
                continue
            if isinstance(effect, MovedAway):
                if self.sessions.release(effect.id, effect.publisher):
                    effects += self._on_departed(effect.publisher, now_s)
                continue
            if isinstance(effect, MovedHere):
                effects += self._on_publisher_arrived(effect.publisher, now_s)
                continue
            if isinstance(effect.notice, AdvertisementInEffect):
                self.sessions.confirm(effect.notice.id, effect.to)
            if isinstance(effect.to, LocalClient):
                effects.append(Notify(effect.to, effect.notice))
            elif not isinstance(effect.notice, Swept | Paused):
                name = effect.to.name
                effects += self._perform(
                    name, self.modules[name].on_in_effect(effect.notice, now_s)
                )
        return effects

    def _on_publication(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> list[Effect]:
        destinations = self.routing.destinations(publication, last_hop, hops, now_s)
        effects: list[Effect] = []
        clients: list[LocalClient] = []
        for to in destinations:
            if type(to) is LocalClient:
                clients.append(to)
            elif type(to) is Neighbour:
                effects.append(Send(to, publication, hops + 1))
            else:
                module = self.modules[to.name]
                effects += self._perform(to.name, module.on_delivery(publication, now_s))
        delivered_to = tuple(clients)
        if clients:
            effects.append(Deliver(delivered_to, publication, hops))
        if self.modules:
            # Mostly they are the same, and modules may keep many of them.
            is_all = len(delivered_to) == len(destinations)
            copied_to = delivered_to if is_all else tuple(destinations)
            for name, module in self.modules.items():
                if module.is_watching and (
                    shown := module.on_publication(publication, last_hop, copied_to, now_s)
                ):
                    effects += self._perform(name, shown)
        return effects

    def _module(self, name: str) -> PolicyModule:
        module = self.modules.get(name)
        if module is None:
            there = ", ".join(self.modules) or "none"
            raise UsageError(f"broker {self.name} has no module {name!r}; it has: {there}")
        return module

    def _perform(self, module: str, requests: Iterable[Request]) -> list[Effect]:
        """Turn the requests of a module into effects."""
        return [self._effect(module, request) for request in requests]

    def _effect(self, module: str, request: Request) -> Effect:
        match request:
            case Timer(name=name, at_s=at_s):
                return SetTimer(module, name, at_s)
            case ToNeighbour(neighbour=neighbour, body=body):
                return Send(neighbour, Letter(module=module, body=body))
            case AskToMove():
                move_to = MoveTo(
                    broker=request.target,
                    address=request.address,
                    within_s=request.within_s,
                    session=request.session,
                )
                return Notify(LocalClient(request.client), move_to)
            case AskForPings(client=client, brokers=brokers):
                return Ping(module, client, brokers)
            case Decision():
                return Report(module, request)
            case _:
                return Submit(module, request)


def _parts(name: str, routing: Routing) -> Parts:
    by_kind: dict[LinkKind, list[Neighbour]] = {kind: [] for kind in LinkKind}
    for link, kind in routing.neighbours.items():
        by_kind[kind].append(link)
    return Parts(
        name,
        by_kind[LinkKind.PRIMARY],
        cross_links=by_kind[LinkKind.CROSS] if isinstance(routing, Structured) else None,
        tables_are_complete=lambda: routing.is_complete,
    )
