"""The module that manages the soft links of one broker of a mesh.

Paper    Opportunistic multipath forwarding in content-based publish/subscribe overlays (Publiy),
         section 6: profiling period T, load exchange and round-trip times within delta.
Departs  1. Loads and round trips go from neighbour to neighbour in letters, each with what the
            sender knows of its other directions within delta: two letters for each primary link and
            exchange, however many brokers are near.  What is k links away is k exchanges old.
            A letter has what has changed since it was last told, and everything now and then.
         2. The load is the use of the output, 1 if it is saturated.
Tested   tests/policies/soft_links/test_soft_link_manager.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from godwit.broker.effects import Decision
from godwit.broker.modules import (
    BrokerView,
    PolicyModule,
    Request,
    Timer,
    ToNeighbour,
    WantSoftLinks,
)
from godwit.broker.stimuli import LinkKind, Neighbour
from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.overlay.mesh.strategies import ForwardingStrategy
from godwit.policies.soft_links.soft_link_gains import LinkGain, SoftLinkChoice

EVALUATE, EXCHANGE = "evaluate", "exchange"
#: Exchanges of loads in one period.
EXCHANGES = 4
#: In one of so many letters is everything: the neighbour may have restarted.
COMPLETE_EVERY = 12
#: What is told again: a load that differs by this much, a round trip by this share.
LOAD_STEP, ROUND_TRIP_STEP = 0.05, 0.5
#: Brokers in one letter.
NEAR_MAX = 4_096


class NearLoad(msgspec.Struct, frozen=True, array_like=True):
    """What is known of a broker behind the sender."""

    broker: str
    load: float
    round_trip_s: float
    """From the sender of the letter to the broker, along the primary links."""


class LoadLetter(msgspec.Struct, frozen=True, array_like=True):
    sent_s: float
    """On the clock of the sender."""

    echo_s: float
    """`sent_s` of the last letter that came from the receiver, 0 if there was none."""

    waited_s: float
    """How long ago that was."""

    near: list[NearLoad]


_decode = msgspec.msgpack.Decoder(LoadLetter).decode


class SoftLinkManager(PolicyModule):
    name = "soft links"
    is_watching = False

    def __init__(self, settings: MeshSettings) -> None:
        self._settings = settings
        self._choice = SoftLinkChoice(settings.load_threshold, settings.candidates)
        self._gains: Mapping[str, LinkGain] = {}
        self._near: dict[str, NearLoad] = {}
        """Loads within delta, with round trips from this broker."""
        self._heard: dict[Neighbour, tuple[float, float]] = {}
        """The last letter of each neighbour: when it was sent, and when it came."""
        self._round_trips_s: dict[Neighbour, float] = {}
        self._told: dict[Neighbour, dict[str, NearLoad]] = {}
        """What each neighbour was told last of each broker."""
        self._exchanges = 0
        self._view: BrokerView

    @property
    def _mesh(self) -> MeshRouting | None:
        """None while the network has another overlay."""
        mesh = self._view.multipath
        return mesh if isinstance(mesh, MeshRouting) else None

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self._view = view
        return [self._next(EVALUATE, now_s), self._next(EXCHANGE, now_s)]

    def _next(self, name: str, now_s: float) -> Timer:
        period_s = self._settings.period_s
        return Timer(name, now_s + (period_s if name == EVALUATE else period_s / EXCHANGES))

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        mesh, requests = self._mesh, []
        if mesh is not None:
            self._follow(mesh.settings)
            requests = self._evaluate(mesh) if name == EVALUATE else self._exchange(mesh, now_s)
        return [*requests, self._next(name, now_s)]

    def _follow(self, settings: MeshSettings) -> None:
        """The network may have changed to a mesh with other settings."""
        if settings != self._settings:
            self._settings = settings
            self._choice = SoftLinkChoice(settings.load_threshold, settings.candidates)

    # -- loads and round trips -----------------------------------------------------------------

    @property
    def _primary(self) -> list[Neighbour]:
        links = self._view.neighbours.items()
        return [link for link, kind in links if kind is LinkKind.PRIMARY]

    def _exchange(self, mesh: MeshRouting, now_s: float) -> list[Request]:
        own = NearLoad(self._view.broker, self._load(now_s), 0.0)
        is_complete = self._exchanges % COMPLETE_EVERY == 0
        self._exchanges += 1
        letters: list[Request] = []
        for link in self._primary:
            told = {} if is_complete else self._told.get(link, {})
            behind = [
                near
                for near in self._behind(mesh.mom, link)
                if _is_news(near, told.get(near.broker))
            ]
            near = [own, *behind][:NEAR_MAX]
            self._told[link] = {**told, **{each.broker: each for each in near}}
            sent_s, came_s = self._heard.get(link, (0.0, now_s))
            letter = LoadLetter(now_s, sent_s, now_s - came_s, near)
            letters.append(ToNeighbour(link, msgspec.msgpack.encode(letter)))
        return letters

    def _behind(self, mom: MasterOverlayMap, link: Neighbour) -> list[NearLoad]:
        """What is known of brokers that are within delta as seen from the neighbour."""
        return [
            near
            for broker, near in self._near.items()
            if broker in mom
            and mom.distances[broker] < mom.delta
            and mom.directions[broker] != link.name
        ]

    def _load(self, now_s: float) -> float:
        return self._view.meters.load(now_s).output_utilisation

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        try:
            letter = _decode(body)
        except msgspec.MsgspecError:
            return ()  # Of another version: loads are a hint.
        self._heard[neighbour] = letter.sent_s, now_s
        if letter.echo_s:
            self._round_trips_s[neighbour] = max(0.0, now_s - letter.echo_s - letter.waited_s)
        link_s, mesh = self._round_trips_s.get(neighbour, 0.0), self._mesh
        for near in letter.near[:NEAR_MAX] if mesh is not None else ():
            far_s = near.round_trip_s + link_s
            if mesh is not None and mesh.mom.directions.get(near.broker) == neighbour.name:
                self._near[near.broker] = NearLoad(near.broker, near.load, far_s)
        return ()

    # -- links ---------------------------------------------------------------------------------

    def _evaluate(self, mesh: MeshRouting) -> list[Request]:
        choice = self._choice
        strategy = self._settings.strategy
        if strategy is ForwardingStrategy.S0:
            return []
        if strategy is ForwardingStrategy.SH:
            strategy = ForwardingStrategy.S2
        self._near = {broker: near for broker, near in self._near.items() if broker in mesh.mom}
        primary = {link.name for link in self._primary}
        of_others = [
            link.name
            for link in mesh.soft_links.links
            if link.name not in choice.soft and link.name not in primary
        ]
        before = list(choice.soft)
        self._gains = choice.evaluate(
            mesh.mom,
            primary,
            mesh.take_traffic(),
            strategy=ForwardingStrategy.S1
            if self._settings.strategy is ForwardingStrategy.S1
            else ForwardingStrategy.S2,
            loads={broker: near.load for broker, near in self._near.items()},
            room=self._settings.fanout - len(primary) - len(of_others),
            slowness={broker: near.round_trip_s for broker, near in self._near.items()},
        )
        opened = [self._decision("open", each) for each in choice.soft if each not in before]
        closed = [self._decision("close", each) for each in before if each not in choice.soft]
        return [WantSoftLinks(tuple(choice.soft)), *opened, *closed]

    def _decision(self, action: str, broker: str) -> Decision:
        found = self._gains.get(broker)
        reason: dict[str, float | str] = {"why": "out of reach"}
        if found is not None:
            reason = {
                "gain": found.gain,
                "publications": float(found.publications),
                "distance": float(found.distance),
            }
        return Decision(action, broker, self._view.broker, broker, reason)

    def account(self, now_s: float) -> Mapping[str, object]:
        return {
            "soft": list(self._choice.soft),
            "candidates": list(self._choice.candidates),
            "gains": {broker: found.gain for broker, found in self._gains.items()},
            "round_trips_s": {link.name: s for link, s in self._round_trips_s.items()},
        }


def _is_news(near: NearLoad, told: NearLoad | None) -> bool:
    if told is None or abs(near.load - told.load) >= LOAD_STEP:
        return True
    change_s = abs(near.round_trip_s - told.round_trip_s)
    return change_s > ROUND_TRIP_STEP * told.round_trip_s
