"""The broker: one content-based router, as a state machine that does no I/O.

    stimulus --> Broker.handle(stimulus, now_s=...) --> [effect, effect, ...]

A broker is handed one stimulus at a time and answers with the effects it wants performed.
(Publications may come in runs, `handle_run`: the answers are the same, and sooner there.)  It never
opens a socket, reads a clock or draws a random number, so the simulator and the network runtime
drive this class, not two copies of it.

    from a client or module   sessions.py (the door) --> routing, or a Refusal
    from a neighbour          routing
    routing messages          Routing.handle decides (overlay/)
    publications              Routing.destinations decides, the core makes the copies
    modules                   see what passes (modules.py), submit messages of their own, and write
                              letters to each other, which no router sees

Read next: stimuli.py (what may happen), effects.py (what may be asked for), overlay/tree.py.
Not here:  bytes on the wire (network/), queues and time (the driver), who should move (balance/).

R1  A message never leaves by the hop it came in on.
R2  A publication goes at most once to each hop, however many filters it matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, assert_never

from godwit.broker.delays import Delays
from godwit.broker.effects import (
    Decision,
    Deliver,
    Effect,
    Notify,
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
from godwit.broker.routing import Answer, MovedAway, MovedHere, Routing
from godwit.broker.sessions import Refused, Sessions
from godwit.broker.stimuli import (
    Client,
    ClientLeft,
    ClientsReturned,
    Hop,
    LinkDown,
    LinkRestarted,
    LinkUp,
    Module,
    Neighbour,
    Pinged,
    Received,
    Recovered,
    Recovering,
    Started,
    Stimulus,
    TimerFired,
)
from godwit.content.messages import (
    Absent,
    AdvertisementInEffect,
    Depart,
    Letter,
    Message,
    MoveTo,
    Pause,
    Paused,
    Present,
    Publication,
    Refusal,
    RoutingMessage,
    Sweep,
    Swept,
    Told,
)

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
        self.modules = {module.name: module for module in modules}
        assert len(self.modules) == len(modules), "module names are unique within a broker"
        tagging = [module.tag for module in modules if module.tags]
        assert len(tagging) <= 1, "there is room for the mark of one module"
        self.sessions = Sessions(
            name, tag=next(iter(tagging), None), codec_checks_values=codec_checks_values
        )

    def handle(self, stimulus: Stimulus, *, now_s: float) -> list[Effect]:
        """The door: every change of state comes in here and leaves as effects."""
        if type(stimulus) is Received:  # By far the most, and asked without a detour.
            message, hop = stimulus.message, stimulus.last_hop
            if type(hop) is not Neighbour:
                return self._on_request(message, hop, now_s)
            if type(message) is Publication:
                return self._on_publication(message, hop, stimulus.hops, now_s)
            if type(message) is Letter:
                return self._on_letter(message, hop, now_s)
            assert not isinstance(message, Depart | Pause), "brokers do not move like that"
            return self._on_routing_message(message, hop, now_s)
        match stimulus:
            case TimerFired(module=module, name=name):
                return self._perform(module, self.modules[module].on_timer(name, now_s))
            case Started():
                return self._on_start(now_s)
            case LinkUp(neighbour=neighbour):
                return self._performed(self.routing.link_up(neighbour), now_s)
            case LinkDown(neighbour=neighbour):
                return self._performed(self.routing.link_down(neighbour), now_s)
            case LinkRestarted(neighbour=neighbour):
                return self._performed(self.routing.link_restarted(neighbour), now_s)
            case Recovering():
                return self._performed(self.routing.recovering(), now_s)
            case ClientsReturned():
                return self._performed(self.routing.clients_returned(), now_s)
            case Recovered():
                return self._performed(self.routing.recovered(), now_s)
            case ClientLeft(client=client):
                return self._on_client_left(client, now_s)
            case Pinged(module=module, client=pinging, round_trips_s=found):
                return self._perform(module, self.modules[module].on_pinged(pinging, found, now_s))
            case _:
                assert_never(stimulus)

    def handle_run(
        self,
        run: Iterable[tuple[Publication, int, T]],
        last_hop: Client | Neighbour,
        *,
        now_s: float,
    ) -> Iterator[tuple[list[Effect], T]]:
        """As `handle` for each of some publications that one peer sent one behind the other.

        With a publication come the links it has crossed, and what the driver wants to have back
        with its effects.  One is handled when the effects of the one before it were taken.
        """
        if type(last_hop) is Neighbour:
            for publication, hops, beside in run:
                yield self._on_publication(publication, last_hop, hops, now_s), beside
            return
        assert type(last_hop) is Client
        admit = self.sessions.admit_publication
        session = self.sessions.of(last_hop)
        for publication, _, beside in run:
            try:
                admitted = admit(publication, session, last_hop, now_s)
            except Refused as refused:
                yield self._refuse(publication, last_hop, str(refused)), beside
            else:
                yield self._on_publication(admitted, last_hop, 0, now_s), beside

    def _on_start(self, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for name, module in self.modules.items():
            owner = self.sessions.owner(Module(name))
            view = BrokerView(self.name, owner, self.meters, self.delays, self.address)
            effects += self._perform(name, module.start(view, now_s))
        return effects

    def _on_request(self, message: Message, hop: Client | Module, now_s: float) -> list[Effect]:
        """A client or a module asks for something."""
        try:
            admitted = self.sessions.admit(message, hop, now_s)
        except Refused as refused:
            return self._refuse(message, hop, str(refused))
        if type(admitted) is Publication:
            return self._on_publication(admitted, hop, 0, now_s)
        if isinstance(admitted, Pause):  # All that it sent before was handled before.
            return [Notify(hop, Paused(move=admitted.move))] if isinstance(hop, Client) else []
        return self._on_routing_message(admitted, hop, now_s)

    def _refuse(self, message: Message, hop: Client | Module, reason: str) -> list[Effect]:
        # A module is our own code: what it submits must be right.
        assert isinstance(hop, Client), f"{hop} submitted what the broker refuses: {reason}"
        if isinstance(message, Publication):
            about = f"{message.publisher}#{message.sequence}"
        elif isinstance(message, Present | Absent | Sweep | Told | Depart | Pause | Letter):
            about = type(message).__name__
        else:
            about = message.id
        return [Notify(hop, Refusal(about=about, reason=reason))]

    def _on_client_left(self, client: Client, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for withdrawal in self.sessions.leave(client):
            effects += self._on_routing_message(withdrawal, client, now_s)
        return effects + self._on_departed(client, now_s)

    def _on_departed(self, publisher: Hop, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for name, module in self.modules.items():
            effects += self._perform(name, module.on_departed(publisher.name, now_s))
        return effects

    def _on_arrived(self, publisher: Hop, now_s: float) -> list[Effect]:
        effects: list[Effect] = []
        for name, module in self.modules.items():
            effects += self._perform(name, module.on_arrived(publisher.name, now_s))
        return effects

    def _on_letter(self, letter: Letter, neighbour: Neighbour, now_s: float) -> list[Effect]:
        module = self.modules.get(letter.module)
        if module is None:
            return []  # Policies need not run everywhere; who writes does not wait for ever.
        return self._perform(module.name, module.on_letter(letter.body, neighbour, now_s))

    def _on_routing_message(self, message: RoutingMessage, hop: Hop, now_s: float) -> list[Effect]:
        return self._performed(self.routing.handle(message, hop), now_s)

    def _performed(self, answers: Iterable[Answer], now_s: float) -> list[Effect]:
        """Turn what the router answers into effects."""
        effects: list[Effect] = []
        for effect in answers:
            if isinstance(effect, Send):
                effects.append(effect)
                continue
            if isinstance(effect, MovedAway):
                if self.sessions.release(effect.id, effect.publisher):
                    effects += self._on_departed(effect.publisher, now_s)
                continue
            if isinstance(effect, MovedHere):
                effects += self._on_arrived(effect.publisher, now_s)
                continue
            if isinstance(effect.notice, AdvertisementInEffect):
                self.sessions.confirm(effect.notice.id, effect.to)
            if isinstance(effect.to, Client):
                effects.append(Notify(effect.to, effect.notice))
            elif not isinstance(effect.notice, Swept):
                name = effect.to.name
                effects += self._perform(
                    name, self.modules[name].on_in_effect(effect.notice, now_s)
                )
        return effects

    def _on_publication(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> list[Effect]:
        destinations = self.routing.destinations(publication, last_hop, hops)
        effects: list[Effect] = []
        clients: list[Client] = []
        for to in destinations:
            if type(to) is Client:
                clients.append(to)
            elif type(to) is Neighbour:
                effects.append(Send(to, publication, hops + 1))
            else:
                module = self.modules[to.name]
                effects += self._perform(to.name, module.on_delivery(publication, now_s))
        if clients:
            effects.append(Deliver(tuple(clients), publication, hops))
        if self.modules:
            effects += self._show(publication, last_hop, tuple(destinations), now_s)
        return effects

    def _show(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> list[Effect]:
        """Let every module see a publication and where it went."""
        return [
            effect
            for name, module in self.modules.items()
            for effect in self._perform(
                name, module.on_publication(publication, last_hop, destinations, now_s)
            )
        ]

    def _perform(self, module: str, requests: Iterable[Request]) -> list[Effect]:
        """Turn what a module asks for into effects."""
        return [self._effect(module, request) for request in requests]

    def _effect(self, module: str, request: Request) -> Effect:
        match request:
            case Timer(name=name, at_s=at_s):
                return SetTimer(module, name, at_s)
            case ToNeighbour(neighbour=neighbour, body=body):
                return Send(neighbour, Letter(module=module, body=body))
            case AskToMove(client=client, target=target, address=address):
                return Notify(Client(client), MoveTo(broker=target, address=address))
            case AskForPings(client=client, brokers=brokers):
                return Ping(module, client, brokers)
            case Decision():
                return Report(module, request)
            case _:
                return Submit(module, request)
