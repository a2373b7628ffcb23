"""The broker: one content-based router, as a state machine that does no I/O.

    stimulus --> Broker.handle(stimulus, now_s=...) --> [effect, effect, ...]

A broker takes one stimulus at a time and returns the effects that the driver performs.
(`handle_run` and `forward` are for publications, with less overhead.)  It never opens a socket,
reads a clock or draws a random number, so simulator and runtime drive this class, not two copies.

    from a client or module   sessions.py admits it --> routing, or a Refusal
    from a neighbour          routing
    routing messages          Routing.handle decides (overlay/)
    publications              Routing.destinations decides, the core makes the copies
    parts that are missing    parts.py: clients are told of gaps (parts_by_epoch.py)
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
    Deliver,
    DropLane,
    Effect,
    EpochFlipped,
    NameEffect,
    Notify,
    OpenLink,
    Send,
)
from godwit.broker.meters import Meters
from godwit.broker.module_effects import effect_of
from godwit.broker.modules import (
    BrokerView,
    PolicyModule,
    Request,
    WantSoftLinks,
)
from godwit.broker.parts import Parts
from godwit.broker.parts_by_epoch import PartsByEpoch
from godwit.broker.routing import (
    Answer,
    MovedAway,
    MovedHere,
    Reshapable,
    Routing,
    Steerable,
    SteerRequest,
    kind_of,
    paths_of,
    structure_of,
)
from godwit.broker.sessions import Refused, Sessions
from godwit.broker.stimuli import (
    AbortEpoch,
    Acknowledged,
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
    Undelivered,
)
from godwit.content.mesh_messages import MeshMessage
from godwit.content.messages import (
    Advertisement,
    AdvertisementInEffect,
    Depart,
    Letter,
    Message,
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
        self.epochs = routing if isinstance(routing, Reshapable) else None
        """The router, if the network can change its shape."""
        self._read_router()
        self._parts = PartsByEpoch(
            name, routing, lane=0 if self.epochs is None else self.epochs.status.epoch
        )
        self.sessions = Sessions(name, codec_checks_values=codec_checks_values)
        self.install(modules)
        self.memory_utilisation: Callable[[], float] = lambda: 0.0
        """Used memory over available memory; the driver sets it if it knows."""

    @property
    def parts(self) -> Parts:
        """What is missing in the epoch in use."""
        return self._parts.in_use

    def _read_router(self) -> None:
        """Read what kind of router it is, which changes with the shape of the network."""
        self.structure, self.paths = structure_of(self.routing), paths_of(self.routing)
        if self.paths is not None:
            self.paths.output_utilisation = self._output_utilisation

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
                return self.forward(message, hop, stimulus.hops, now_s)
            if type(message) is Letter:
                return self._on_letter(message, hop, now_s)
            if isinstance(message, MeshMessage):
                return self._on_mesh_message(message, hop, now_s)
            if isinstance(message, PartLost | PartReturned | PartCheck | PartChecked):
                return [*self._parts.of(hop).handle(message, hop)]
            assert not isinstance(message, Depart | Pause), "brokers do not move like that"
            return self._on_routing_message(message, hop, now_s)
        match stimulus:
            case TimerFired(module=module, name=name):
                timed = self.modules.get(module)  # None if it was removed meanwhile.
                return [] if timed is None else self._perform(module, timed.on_timer(name, now_s))
            case Started():
                return self._on_start(now_s)
            case LinkUp(neighbour=neighbour, kind=kind):
                return self._on_link_up(neighbour, kind, now_s)
            case LinkDown(neighbour=neighbour, loss=loss):
                return self._on_link_down(neighbour, loss, now_s)
            case LinkGivenUp():
                return self._on_link_given_up(stimulus, now_s)
            case LinkRestarted(neighbour=neighbour):
                effects = self._performed(self.routing.link_restarted(neighbour), now_s)
                return [*effects, *self._parts.of(neighbour).link_restarted(neighbour)]
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
            case ClientArrived(client=client, session=id):
                return self._tell_modules(lambda each: each.on_arrived(client.name, id, now_s))
            case LinkAway(neighbour=neighbour, is_away=is_away):
                return self._on_link_away(neighbour, now_s, is_away=is_away)
            case NameWish() | NameWaitOver() | NameLeft() | NameDecided():
                return self._performed(self.routing.names.stimulate(stimulus), now_s)
            case Pinged(module=module, client=pinging, round_trips_s=found):
                return self._perform(module, self.modules[module].on_pinged(pinging, found, now_s))
            case OperatorCommand(module=module, command=command):
                return self._perform(module, self._module(module).on_command(command, now_s))
            case BuildEpoch() | FlipEpoch() | AbortEpoch() | AdoptEpoch():
                return self._on_epoch_stimulus(stimulus, now_s)
            case Acknowledged() | Undelivered():
                return self._on_path_stimulus(stimulus, now_s)
            case _:
                assert_never(stimulus)

    def _on_mesh_message(
        self, message: MeshMessage, neighbour: Neighbour, now_s: float
    ) -> list[Effect]:
        received = () if self.paths is None else self.paths.receive(message, neighbour)
        return self._performed(received, now_s)

    def _on_path_stimulus(self, stimulus: Acknowledged | Undelivered, now_s: float) -> list[Effect]:
        neighbour, paths = stimulus.neighbour, self.paths
        if paths is None:
            return []  # The epoch of the link is over.
        if isinstance(stimulus, Acknowledged):
            return self._performed(paths.acknowledged(neighbour, stimulus.position), now_s)
        detour = paths.detour(stimulus.publication, neighbour)
        return [Send(to, stimulus.publication, stimulus.hops) for to in detour]

    def handle_run(
        self,
        run: Iterable[tuple[Publication, int, T]],
        last_hop: LocalClient | Neighbour,
        *,
        now_s: float,
    ) -> Iterator[tuple[list[Effect], T]]:
        """As `handle` for consecutive publications of one peer.

        A publication comes with the links it has crossed, and an object that its effects have, too.
        It is handled when the effects of the one before it were taken.
        """
        if type(last_hop) is Neighbour:
            for publication, hops, beside in run:
                yield self.forward(publication, last_hop, hops, now_s), beside
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
                yield self.forward(admitted, last_hop, 0, now_s), beside

    def _on_link_up(self, neighbour: Neighbour, kind: LinkKind, now_s: float) -> list[Effect]:
        effects = self._performed(self.routing.link_up(neighbour, kind), now_s)
        # Behind the tables: a check says that they have arrived.
        kind = kind_of(self.routing, self.epochs, neighbour) or kind
        if kind is LinkKind.SOFT:
            return effects
        is_cross = kind is LinkKind.CROSS
        return [*effects, *self._parts.of(neighbour).link_up(neighbour, is_cross=is_cross)]

    def _on_link_down(self, neighbour: Neighbour, loss: Loss | None, now_s: float) -> list[Effect]:
        if kind_of(self.routing, self.epochs, neighbour) is LinkKind.SOFT:
            return self._performed(self.routing.link_down(neighbour), now_s)
        parts = self._parts.of(neighbour)
        told = parts.link_down(neighbour, loss)
        effects = self._performed(self.routing.link_down(neighbour), now_s)
        return [*told, *effects, *parts.go_on()]

    def _on_link_given_up(self, stimulus: LinkGivenUp, now_s: float) -> list[Effect]:
        neighbour = stimulus.neighbour
        parts = self._parts.of(neighbour)
        if stimulus.reached_over is not None:
            return [*parts.reach_over(stimulus.reached_over, neighbour)]
        told = parts.give_up(neighbour, stimulus.loss, stimulus.known_as)
        effects = self._performed(self.routing.link_down(neighbour), now_s)
        return [*told, *effects, *parts.go_on()]

    def _on_link_away(self, neighbour: Neighbour, now_s: float, *, is_away: bool) -> list[Effect]:
        if self.paths is not None:
            self.paths.link_away(neighbour, is_away=is_away)
        return self._performed(self.routing.names.link_away(neighbour, is_away=is_away), now_s)

    # -- the network changes its shape ---------------------------------------------------------

    def _on_epoch_stimulus(self, stimulus: EpochStimulus, now_s: float) -> list[Effect]:
        if self.epochs is None:
            raise UsageError(f"the overlay of {self.name} cannot change its shape")
        if isinstance(stimulus, BuildEpoch) and self.parts.missing:
            missing = ", ".join(sorted({key.broker for key in self.parts.missing}))
            raise UsageError(f"parts of the network are missing: {missing}")
        effects = self._performed(self.epochs.change_epoch(stimulus), now_s)
        self._read_router()
        started = () if self.paths is None else self.paths.start(self.address)
        return [*effects, *self._performed(started, now_s)]

    def _why_not_now(self, message: Message, hop: LocalClient | Module) -> str | None:
        """Why a client cannot move at present (E4 in overlay/epochs/epoch_routing.py)."""
        if self.epochs is None or not self.epochs.is_changing:
            return None
        is_move = self.sessions.is_move(message, hop, self.routing.publisher)
        return "the network changes its shape just now; try again" if is_move else None

    def _on_start(self, now_s: float) -> list[Effect]:
        started = () if self.paths is None else self.paths.start(self.address)
        effects = self._performed(started, now_s)
        for module in self.modules.values():
            effects += self.start_module(module, now_s)
        return effects

    def start_module(self, module: PolicyModule, now_s: float) -> list[Effect]:
        """Start a module, also one that comes to a broker that runs."""
        name, self.modules[module.name] = module.name, module
        owner = self.sessions.owner(Module(name))
        return self._perform(name, module.start(BrokerView(self, owner), now_s))

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
            return self.forward(admitted, hop, 0, now_s)
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
        pausing = self.epochs or self.structure or self.paths
        if pausing is not None:
            return self._performed(pausing.pause(hop, move), now_s)
        return [Notify(hop, Paused(move=move))]  # All that the client sent before is handled.

    def _refuse(self, message: Message, hop: LocalClient | Module, reason: str) -> list[Effect]:
        # A module is our own code: a refusal is a bug.
        assert isinstance(hop, LocalClient), f"{hop} submitted what the broker refuses: {reason}"
        about = getattr(message, "id", type(message).__name__)
        if isinstance(message, Publication):
            about = f"{message.publisher}#{message.sequence}"
        return [Notify(hop, Refusal(about=about, reason=reason))]

    def _on_client_left(self, client: LocalClient, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for withdrawal in self.sessions.leave(client):
            effects += self._on_routing_message(withdrawal, client, now_s)
        return effects + self._on_departed(client, now_s)

    def _tell_modules(self, tell: Callable[[PolicyModule], Iterable[Request]]) -> list[Effect]:
        effects: list[Effect] = []
        for name, module in self.modules.items():
            effects += self._perform(name, tell(module))
        return effects

    def _on_departed(self, publisher: Hop, now_s: float) -> list[Effect]:
        return self._tell_modules(lambda each: each.on_departed(publisher.name, now_s))

    def _on_publisher_arrived(self, publisher: Hop, now_s: float) -> list[Effect]:
        return self._tell_modules(lambda module: module.on_publisher_arrived(publisher.name, now_s))

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
            if isinstance(effect, Send | OpenLink | CloseLink | NameEffect):
                effects.append(effect)
                continue
            if isinstance(effect, DropLane | EpochFlipped):
                assert self.epochs is not None
                if isinstance(effect, DropLane):
                    effects += self._parts.drop(effect.lane, self.epochs.status.epoch)
                effects.append(effect)
                self._read_router()
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

    def forward(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> list[Effect]:
        """As `handle` for a publication that was admitted, here or at the broker before."""
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
        to_clients = tuple(clients)
        if to_clients:
            effects.append(Deliver(to_clients, publication, hops))
        if self.modules:
            # Mostly they are the same, and modules may keep many of them.
            is_all = len(to_clients) == len(destinations)
            copied_to: Sequence[Hop] = to_clients if is_all else tuple(destinations)
            for name, module in self.modules.items():
                if module.is_watching and (
                    shown := module.on_publication(publication, last_hop, copied_to, now_s)
                ):
                    effects += self._perform(name, shown)
        return effects

    def _output_utilisation(self, now_s: float) -> float:
        return self.meters.load(now_s).output_utilisation

    def _module(self, name: str) -> PolicyModule:
        if name not in self.modules:
            there = ", ".join(self.modules) or "none"
            raise UsageError(f"broker {self.name} has no module {name!r}; it has: {there}")
        return self.modules[name]

    def _perform(self, module: str, requests: Iterable[Request]) -> list[Effect]:
        """Turn the requests of a module into effects."""
        effects: list[Effect] = []
        for request in requests:
            if isinstance(request, WantSoftLinks):
                if self.paths is not None:  # Else the overlay is another one meanwhile.
                    effects += self._performed(self.paths.want_soft_links(request.brokers), 0.0)
            elif isinstance(request, SteerRequest):
                assert isinstance(self.routing, Steerable), f"{module} steers {self.name}"
                effects += self.routing.steer(request)
            else:
                effects.append(effect_of(module, request))
        return effects
