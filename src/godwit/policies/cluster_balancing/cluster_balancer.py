"""Dynamic load balancing of one broker in a cluster.

Paper    Cluster-based pub/sub (document 003), section 3.3.
Words    phi R -> threshold.

    a window ends      more messages than the threshold: ask all mates
    mates              ACCEPT what they have left, and reserve it
    answers are here   hand over the excess: ring publish load first, then cluster publish load; if
                       it is subscriptions that come, take none for a random time
    later              a helper that is overloaded gives work back

A broker knows the load of its mates from their answers only, and of no other broker: decisions
follow the load as late as letters do.

Departs  1. A broker that helps does not ask for help, and one that is helped does not help: else
            work goes in circles.  A helper gives work back instead.
         2. Work is not taken back when the load falls; routes of publishers that are silent are
            forgotten.
         3. A broker of a ring does not refuse publications: it hands over their matching.  What it
            must receive is one copy of each.
Tested   tests/policies/cluster_balancing/, tests/simulation/test_cluster_balancing.py.

D1  One request is open at a time; it ends when all mates have answered, or after answer_s.
D2  A broker that has promised help does not ask for it; the router sees to it that one that matches
    for others has all subscriptions (K7 in overlay/clusters/steered_routing.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from godwit.broker.effects import Decision
from godwit.broker.modules import BrokerView, PolicyModule, Request, Timer, ToNeighbour
from godwit.broker.routing import (
    ResumeSubscriptions,
    RouteCluster,
    RouteRing,
    SteeringStatus,
    StopSubscriptions,
)
from godwit.broker.stimuli import Hop, Neighbour
from godwit.content.messages import Publication
from godwit.errors import UsageError
from godwit.overlay.clusters.steered_routing import CLUSTER_LANE, RING_LANE
from godwit.policies.cluster_balancing.balancing_letters import (
    Accept,
    BalancingLetter,
    GiveBack,
    LoadRequest,
    Used,
    decoded,
    encoded,
)
from godwit.policies.cluster_balancing.message_counts import ClusterLoads, Helped, MessageCounts
from godwit.policies.cluster_balancing.portions import (
    ClusterWork,
    Offer,
    RingWork,
    hand_over_clusters,
    hand_over_rings,
)
from godwit.policies.cluster_balancing.settings import ClusterBalancingSettings


class ClusterBalancer(PolicyModule):
    name = "cluster-balancing"

    def __init__(self, settings: ClusterBalancingSettings, random: Random) -> None:
        """`random` draws how long a broker takes no subscriptions, and who stands in for it."""
        self._settings = settings
        self._random = random
        self._counts = MessageCounts()
        self._loads = ClusterLoads()
        self._subscriptions = 0
        """Messages about subscriptions before this window."""
        self._number = 0
        self._mates: frozenset[str] = frozenset()
        self._asked = 0
        """Mates that were asked in the open request."""
        self._offers: dict[str, Offer] | None = None
        """Answers to the open request (D1)."""
        self._reserved: dict[str, tuple[float, float]] = {}
        """What mates were promised, and until when."""
        self._rests_until_s = 0.0
        self._shunned: dict[str, float] = {}
        """Helpers that have given work back, and until when they are not asked."""
        self._heard_s: dict[str, float] = {}
        """When publishers have last published."""

    @property
    def loads(self) -> ClusterLoads:
        """Of the last window."""
        return self._loads

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self._view = view
        if view.steering is None:
            raise UsageError(f"{view.broker}: cluster balancing needs an overlay of clusters")
        self._mates = frozenset(view.steering.mates)
        return [Timer("window", now_s + self._settings.window_s)]

    @property
    def _steering(self) -> SteeringStatus:
        steering = self._view.steering
        assert steering is not None
        return steering

    # -- load ----------------------------------------------------------------------------------

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        lanes = [hop.lane for hop in destinations if type(hop) is Neighbour]
        publisher = publication.publisher
        if type(last_hop) is not Neighbour:
            mates = self._to_mates(destinations)
            self._counts.own(publisher, len(lanes) - mates, mates)
        elif last_hop.lane >= RING_LANE:
            is_ring = last_hop.lane < CLUSTER_LANE
            self._counts.helped(Helped(last_hop.name, publisher, is_ring), len(lanes))
        elif last_hop.name in self._mates:
            self._counts.from_mate()
        else:
            self._counts.over_ring(publisher, len(lanes))
        self._heard_s[publisher] = now_s
        return ()

    def _to_mates(self, destinations: Sequence[Hop]) -> int:
        """Copies of the cluster phase, not those of the ring phase."""
        return sum(
            type(hop) is Neighbour
            and (hop.lane >= CLUSTER_LANE or (hop.lane < RING_LANE and hop.name in self._mates))
            for hop in destinations
        )

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        if name == "resume":
            return self._resume(now_s)
        if name == "answers":
            return self._decide(now_s)
        return [*self._on_window(now_s), Timer("window", now_s + self._settings.window_s)]

    def _on_window(self, now_s: float) -> list[Request]:
        steering, settings = self._steering, self._settings
        self._mates = frozenset(steering.mates)
        count = steering.subscriptions_in + steering.subscriptions_out
        units = settings.window_s / settings.unit_s
        self._loads = self._counts.close(units, count - self._subscriptions)
        self._subscriptions = count
        for helped in self._loads.helped:  # A promise that is used stays.
            if helped.owner in self._reserved:
                self._reserve(helped.owner, 0.0, now_s)
        self._reserved = {who: it for who, it in self._reserved.items() if it[1] > now_s}
        forgotten = self._forget(steering, now_s)
        excess = self._loads.total - settings.threshold
        if excess <= 0 or now_s < self._rests_until_s:
            return forgotten
        if self._loads.helped:
            return forgotten + self._give_back(excess, now_s)
        if self._offers is not None or steering.is_changing or self._is_helping:
            return forgotten
        return forgotten + self._ask(steering, now_s)

    @property
    def _is_helping(self) -> bool:
        return bool(self._reserved or self._steering.matches_for)

    def _forget(self, steering: SteeringStatus, now_s: float) -> list[Request]:
        """Give up the routes of publishers that have been silent."""
        since_s = now_s - self._settings.shun_windows * self._settings.window_s
        silent = {name for name, at_s in self._heard_s.items() if at_s < since_s}
        if not silent:
            return []
        for name in silent:
            del self._heard_s[name]
        rings = {p for p, _ in steering.rings} & silent
        return [
            *(RouteRing(p, _clusters(steering, p), None) for p in sorted(rings)),
            *(RouteCluster(p, None) for p in sorted(steering.clusters.keys() & silent)),
        ]

    # -- the overloaded broker -----------------------------------------------------------------

    def _ask(self, steering: SteeringStatus, now_s: float) -> list[Request]:
        mates = [m for m in steering.mates if self._shunned.get(m, 0.0) <= now_s]
        if not mates:
            return []
        self._number += 1
        self._offers, self._asked = {}, len(mates)
        request = LoadRequest(self._number)
        letters = [self._letter(mate, request) for mate in mates]
        return [*letters, Timer("answers", now_s + self._settings.answer_s)]

    def _letter(self, mate: str, letter: BalancingLetter) -> Request:
        lanes = [n for n in self._view.neighbours if n.name == mate]
        return ToNeighbour(min(lanes, default=Neighbour(mate)), encoded(letter))

    def _on_accept(self, accept: Accept, mate: str, now_s: float) -> list[Request]:
        if self._offers is None or accept.number != self._number:
            # Too late: it need not keep what it has promised.
            return [self._letter(mate, Used(0.0))] if accept.amount else []
        self._offers[mate] = Offer(mate, accept.load, accept.amount)
        return self._decide(now_s) if len(self._offers) == self._asked else []

    def _decide(self, now_s: float) -> list[Request]:
        if self._offers is None:
            return []
        offers, self._offers = [*self._offers.values()], None
        settings, steering, loads = self._settings, self._steering, self._loads
        excess = loads.total - settings.threshold
        excess, rings = hand_over_rings(excess, self._ring_work(steering), offers)
        excess, clusters = hand_over_clusters(excess, self._cluster_work(steering), offers)
        stop = self._stop(offers, excess, now_s)
        self._rests_until_s = now_s + settings.rest_windows * settings.window_s
        requests: list[Request] = [*rings, *clusters, *stop]
        routes: list[RouteRing | RouteCluster] = [*rings, *clusters]
        requests += [self._decision(route) for route in routes]
        promised = [offer for offer in offers if offer.amount]
        return requests + [self._letter(each.helper, Used(each.taken)) for each in promised]

    def _ring_work(self, steering: SteeringStatus) -> list[RingWork]:
        return [
            RingWork(
                publisher,
                load.publications,
                tuple(c for c in steering.other_clusters if (publisher, c) not in steering.rings),
                frozenset(to for (p, _), to in steering.rings.items() if p == publisher),
            )
            for publisher, load in self._loads.own.items()
        ]

    def _cluster_work(self, steering: SteeringStatus) -> list[ClusterWork]:
        loads = (*self._loads.own.items(), *self._loads.over_ring.items())
        return [
            ClusterWork(publisher, load.publications, load.cluster_sends)
            for publisher, load in loads
            if publisher not in steering.clusters
        ]

    def _decision(self, route: RouteRing | RouteCluster) -> Decision:
        reason: dict[str, float | str] = {"load": self._loads.total}
        if isinstance(route, RouteRing):
            reason["clusters"] = len(route.clusters)
        action = "ring" if isinstance(route, RouteRing) else "cluster"
        assert route.to is not None
        return Decision(f"hand over {action}", route.publisher, self._view.broker, route.to, reason)

    # -- subscriptions -------------------------------------------------------------------------

    def _stop(self, offers: Sequence[Offer], excess: float, now_s: float) -> list[Request]:
        """Take no subscriptions for a time, if they are what is too much."""
        if not 0 < excess <= self._loads.subscriptions or self._is_helping:
            return []
        added = sum(work.added for work in self._cluster_work(self._steering))
        able = [offer for offer in offers if offer.left >= added]
        if not able:
            return []
        chosen = self._random.choice(able)
        chosen.taken += added
        stop_s = self._random.uniform(self._settings.stop_s_min, self._settings.stop_s_max)
        reason: dict[str, float | str] = {"load": self._loads.total, "seconds": stop_s}
        broker = self._view.broker
        return [
            StopSubscriptions(chosen.helper),
            Timer("resume", now_s + stop_s),
            Decision("stop subscriptions", "", broker, chosen.helper, reason),
        ]

    def _resume(self, now_s: float) -> list[Request]:
        steering = self._steering
        if steering.stand_in is None and not steering.is_changing:
            return []
        return [ResumeSubscriptions(), Timer("resume", now_s + self._settings.window_s)]

    # -- the helper ----------------------------------------------------------------------------

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        letter = decoded(body)
        match letter:
            case LoadRequest(number=number):
                return [self._letter(neighbour.name, self._accept(number, neighbour.name, now_s))]
            case Accept():
                return self._on_accept(letter, neighbour.name, now_s)
            case Used(amount=amount):
                return self._on_taken(neighbour.name, amount, now_s)
            case GiveBack():
                return self._on_give_back(letter, neighbour.name, now_s)

    def _accept(self, number: int, owner: str, now_s: float) -> Accept:
        steering, load = self._steering, self._loads.total
        is_helped = bool(steering.rings or steering.clusters or steering.stand_in)
        if is_helped or steering.is_changing or self._offers is not None:
            return Accept(number, 0.0, load)
        promised = sum(amount for amount, _ in self._reserved.values())
        amount = max(0.0, self._settings.threshold - load - promised)
        if amount:
            self._reserve(owner, amount, now_s)
        return Accept(number, amount, load)

    def _reserve(self, owner: str, amount: float, now_s: float) -> None:
        until_s = now_s + self._settings.rest_windows * self._settings.window_s
        self._reserved[owner] = (amount, until_s)

    def _on_taken(self, owner: str, amount: float, now_s: float) -> list[Request]:
        if amount:
            self._reserve(owner, amount, now_s)
        else:
            self._reserved.pop(owner, None)
        return []

    def _give_back(self, excess: float, now_s: float) -> list[Request]:
        """Let others do their work themselves again, the largest first, until it is enough."""
        work = sorted(self._loads.helped.items(), key=lambda item: (-item[1], item[0].publisher))
        by_owner: dict[str, list[Helped]] = {}
        for helped, load in work:
            if excess <= 0:
                break
            by_owner.setdefault(helped.owner, []).append(helped)
            excess -= load
        self._rests_until_s = now_s + self._settings.rest_windows * self._settings.window_s
        return [
            self._letter(
                owner,
                GiveBack(
                    tuple(each.publisher for each in some if each.is_ring),
                    tuple(each.publisher for each in some if not each.is_ring),
                ),
            )
            for owner, some in by_owner.items()
        ]

    def _on_give_back(self, back: GiveBack, helper: str, now_s: float) -> list[Request]:
        windows = self._settings.shun_windows
        self._shunned[helper] = now_s + windows * self._settings.window_s
        steering = self._steering
        rings: list[Request] = []
        for publisher in back.rings:
            theirs = [c for (p, c), to in steering.rings.items() if (p, to) == (publisher, helper)]
            if theirs:
                rings.append(RouteRing(publisher, tuple(theirs), None))
        clusters = [p for p in back.clusters if steering.clusters.get(p) == helper]
        return [*rings, *(RouteCluster(publisher, None) for publisher in clusters)]


def _clusters(steering: SteeringStatus, publisher: str) -> tuple[int, ...]:
    return tuple(c for p, c in steering.rings if p == publisher)
