"""The gain of a link, and which soft links a broker keeps, opens and closes.

Paper    Opportunistic multipath forwarding in content-based publish/subscribe overlays (Publiy),
         section 6.
Words    gain(N), pubs(N, T), dist(A, N), loadThreshold as in the paper; sLinks -> soft;
         cLinks -> candidates; fanout -> room: what primary links and those of others leave of it.
Claim    The links with the highest gain are open: those that spare the most copies at brokers in
         between, and more if these are loaded.
Departs  1. The factor of a loaded broker is 1 + max(0, load - threshold); the paper has min, which
            would only lower the gain of bypassing brokers that are not loaded (erratum E17).
         2. Candidates are the anchors with the most traffic; the paper takes neighbours of the best
            links, and finds a broker that is k links away after k periods.
         3. A soft link is replaced only by one whose gain is higher by REPLACING, and one without
            gain stays for ROUNDS_WITHOUT_GAIN periods: the paper leaves both open.
Tested   tests/policies/soft_links/test_soft_link_gains.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from godwit.overlay.mesh.forwarding import Forwarding
from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.mesh.strategies import ForwardingStrategy, forward

#: How much higher the gain of a candidate has to be.
REPLACING = 1.1
#: How long a soft link without gain stays.
ROUNDS_WITHOUT_GAIN = 3


def gain(
    publications: int, distance: int, loads_between: Iterable[float], threshold: float
) -> float:
    """What a direct link spares: copies at brokers in between, weighted by their load (E17)."""
    boost = prod(1 + max(0.0, load - threshold) for load in loads_between)
    return publications * (distance - 1) * boost


@dataclass(frozen=True, slots=True)
class LinkGain:
    """Why a link is worth something."""

    broker: str
    publications: int
    distance: int
    gain: float


@dataclass(slots=True)
class SoftLinkChoice:
    """What a broker remembers from one period to the next."""

    threshold: float
    candidates_max: int
    soft: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    idle_rounds: Counter[str] = field(default_factory=Counter)
    """Periods without gain, by soft link."""

    def evaluate(
        self,
        mom: MasterOverlayMap,
        primary: Collection[str],
        traffic: Iterable[tuple[Collection[str], int]],
        *,
        strategy: ForwardingStrategy,
        loads: Mapping[str, float],
        room: int,
        slowness: Mapping[str, float] | None = None,
    ) -> dict[str, LinkGain]:
        """Choose the soft links and candidates of the next period; the gains that it is based on.

        `traffic` are sets of anchors of publications, and how often each occurred; `slowness` the
        round-trip times of the primary paths, which decide between candidates.
        """
        traffic = list(traffic)
        self.soft = [each for each in self.soft if each in mom and each not in primary]
        self.candidates = [each for each in self.candidates if each in mom and each not in primary]
        counted = self._count(mom, primary, traffic, strategy)
        gains = {
            broker: self._gain(mom, broker, counted[broker], loads)
            for broker in dict.fromkeys((*self.soft, *self.candidates))
        }
        self.soft = self._best(gains, room)
        self.candidates = self._new_candidates(mom, primary, traffic, loads, slowness or {})
        return gains

    def _count(
        self,
        mom: MasterOverlayMap,
        primary: Collection[str],
        traffic: Iterable[tuple[Collection[str], int]],
        strategy: ForwardingStrategy,
    ) -> Counter[str]:
        """pubs(N, T): what each link would carry if the candidates were links (E19: only here)."""
        wom = Forwarding(mom, {*primary, *self.soft, *self.candidates}, 0).wom
        counted: Counter[str] = Counter()
        for anchors, times in traffic:
            mask = 0
            for anchor in anchors:
                mask |= wom.substitutes.get(anchor, 0)
            for broker in wom.names(forward(strategy, wom, mask)):
                counted[broker] += times
        return counted

    def _gain(
        self, mom: MasterOverlayMap, broker: str, publications: int, loads: Mapping[str, float]
    ) -> LinkGain:
        between = mom.path(broker)[:-1]
        found = gain(
            publications,
            mom.distances[broker],
            (loads.get(each, 0.0) for each in between),
            self.threshold,
        )
        return LinkGain(broker, publications, mom.distances[broker], found)

    def _best(self, gains: Mapping[str, LinkGain], room: int) -> list[str]:
        for broker in self.soft:
            idle = 0 if gains[broker].gain else self.idle_rounds[broker] + 1
            self.idle_rounds[broker] = idle
        kept = [each for each in self.soft if self.idle_rounds[each] < ROUNDS_WITHOUT_GAIN]

        def value(broker: str) -> float:
            return gains[broker].gain * (REPLACING if broker in kept else 1.0)

        new = [each for each in gains if each not in kept and gains[each].gain > 0]
        ranked = sorted((*kept, *new), key=lambda each: (-value(each), each))[: max(room, 0)]
        self.idle_rounds = Counter({each: self.idle_rounds[each] for each in ranked})
        return ranked

    def _new_candidates(
        self,
        mom: MasterOverlayMap,
        primary: Collection[str],
        traffic: Iterable[tuple[Collection[str], int]],
        loads: Mapping[str, float],
        slowness: Mapping[str, float],
    ) -> list[str]:
        wanted: Counter[str] = Counter()
        for anchors, times in traffic:
            for anchor in anchors:
                wanted[anchor] += times
        possible = [
            self._gain(mom, broker, times, loads)
            for broker, times in wanted.items()
            if broker in mom and broker not in primary and broker not in self.soft
        ]
        possible.sort(key=lambda each: (-each.gain, -slowness.get(each.broker, 0.0), each.broker))
        return [each.broker for each in possible if each.gain > 0][: self.candidates_max]
