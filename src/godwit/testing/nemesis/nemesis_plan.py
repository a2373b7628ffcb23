"""The plan of a run, drawn from its seed: the network, what clients do, what fails, and when.

The plan is the same for the same seed.  What happens is not, quite: real processes share a real
machine.  A seed that has found something is therefore run several times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from godwit.content.filters import Filter
from godwit.overlay.clusters.cluster_structure import ClusterStructure, arrange
from godwit.overlay.topology import Topology, random_tree
from godwit.runtime.settings import Limits
from godwit.testing.nemesis.fault_kinds import (
    IMPATIENT,
    NETWORK_KINDS,
    PATIENT,
    FaultKind,
    FaultRule,
)
from godwit.testing.random_content import CLASSES, RandomContent
from godwit.testing.scripts import (
    AdvertiseStep,
    PublishStep,
    Step,
    SubscribeStep,
    UnadvertiseStep,
    UnsubscribeStep,
)

#: With these, brokers and clients are back in time whatever happens, on a busy machine too.
PATIENT_LIMITS = Limits(heartbeat_s=0.5, link_s=90.0, session_s=90.0, restart_s=3.0, patience_s=5.0)
#: With these, they are given up often.
IMPATIENT_LIMITS = Limits(heartbeat_s=0.4, link_s=1.5, session_s=2.5, restart_s=1.0, patience_s=1.0)
#: A broker is left alone for so long after a fault: it has to start.
RESTART_S = 1.0
#: So often there is a burst of faults, which are over after BURST_S.  Then the network comes to
#: rest and delivers.  If something failed all the time, nothing would be in effect.
EVERY_S = 10.0
BURST_S = 5.0
#: So much later some brokers start.  Clients have their names a second after the start, and publish
#: a moment later, if things come into effect too early.
LATE_S = (1.5, 4.0)
#: How far a clock is set, at most; brokers and clients have no bound for that.
CLOCK_S = 3_600.0
BURST_MAX = 8
#: Records are drawn so often until there are enough that the advertisement permits.
DRAWS_MAX = 50
WIDE = tuple(Filter.parse(f"class = '{name}'") for name in CLASSES)
#: Between two steps of one client, on average.
STEP_S = 0.4


@dataclass(frozen=True, slots=True)
class MoveStep:
    broker: str


NemesisStep: TypeAlias = Step | MoveStep


@dataclass(frozen=True, slots=True)
class PersonPlan:
    """A client and what it does, as seconds since the start and steps."""

    name: str
    home: str
    steps: tuple[tuple[float, NemesisStep], ...]


@dataclass(frozen=True, slots=True)
class PlannedFault:
    at_s: float
    kind: FaultKind
    where: tuple[str, ...]
    """Brokers, the two ends of a link, or a client."""

    lasts_s: float
    amount: float
    """Between -1 and 1: how much the clock is changed; which way is cut."""

    def __str__(self) -> str:
        return f"{self.kind.value} {' '.join(self.where)} for {self.lasts_s:.1f} s"


@dataclass(frozen=True, slots=True)
class NemesisPlan:
    seed: int
    seconds: float
    topology: Topology
    is_patient: bool
    late_s: Mapping[str, float]
    """Brokers that start so many seconds after the others."""

    people: tuple[PersonPlan, ...]
    faults: tuple[PlannedFault, ...]
    structure: ClusterStructure | None = None
    """None in a tree."""

    @property
    def clusters(self) -> int | None:
        return None if self.structure is None else len(self.structure.clusters)

    @property
    def limits(self) -> Limits:
        return PATIENT_LIMITS if self.is_patient else IMPATIENT_LIMITS


def draw_plan(
    seed: int,
    *,
    seconds: float = 30.0,
    kinds: Collection[FaultKind] = NETWORK_KINDS,
    in_clusters: bool = False,
) -> NemesisPlan:
    """The plan of this seed.  Even seeds are patient, odd ones are not.

    With `in_clusters` the brokers of the tree are in clusters instead, most of several brokers.
    """
    random = Random(seed)
    is_patient = seed % 2 == 0
    topology = random_tree(random.randint(5, 9), random)
    structure = None
    if in_clusters:
        count = len(topology.brokers)
        structure = arrange(topology.brokers, random.randint(1, 1 + count // 2))
        topology = structure.topology
        kinds = [kind for kind in kinds if kind is not FaultKind.EXTRA_LINK]  # None is too many.
    names = [f"c{number}" for number in range(random.randint(4, 7))]
    late = random.sample(topology.brokers, random.randint(0, 2))
    content = RandomContent(("class", "name", "size"), random)
    people = tuple(_person(name, topology, seconds, content, random) for name in names)
    faults = _Faults(topology, names, seconds, random)
    rules = PATIENT if is_patient else IMPATIENT
    for kind, rule in rules.items():
        # Drawn also if it is not wanted, so that the others are the same.
        faults.add(kind, rule, is_wanted=kind in kinds)
    return NemesisPlan(
        seed=seed,
        seconds=seconds,
        topology=topology,
        is_patient=is_patient,
        late_s={broker: random.uniform(*LATE_S) for broker in late},
        people=people,
        faults=tuple(sorted(faults.planned, key=lambda fault: fault.at_s)),
        structure=structure,
    )


def planned_faults(
    seeds: Iterable[int],
    *,
    seconds: float = 30.0,
    kinds: Collection[FaultKind] = NETWORK_KINDS,
    in_clusters: bool = False,
) -> Counter[FaultKind]:
    """How often each kind is planned in these runs, without running them."""
    plans = (
        draw_plan(seed, seconds=seconds, kinds=kinds, in_clusters=in_clusters) for seed in seeds
    )
    return Counter(fault.kind for plan in plans for fault in plan.faults)


class _Faults:
    """Draws faults; no two of them hit the same broker, link or client at a time."""

    def __init__(
        self, topology: Topology, names: list[str], seconds: float, random: Random
    ) -> None:
        self.planned: list[PlannedFault] = []
        self._topology = topology
        self._names = names
        self._seconds = seconds
        self._random = random
        self._busy: list[tuple[float, float, frozenset[str]]] = []

    def add(self, kind: FaultKind, rule: FaultRule, *, is_wanted: bool) -> None:
        for _ in range(max(1, round(rule.per_30_s * self._seconds / 30.0))):
            fault = self._draw(kind, rule)
            if is_wanted:
                self.planned.append(fault)

    def _draw(self, kind: FaultKind, rule: FaultRule) -> PlannedFault:
        draw = self._random
        for attempt in range(100):
            lasts_s = draw.uniform(*rule.lasts_s)
            burst = draw.randrange(max(1, int(self._seconds / EVERY_S)))
            at_s = burst * EVERY_S + draw.uniform(0.0, max(0.5, BURST_S - lasts_s))
            where = self._where(kind)
            until_s = at_s + lasts_s + RESTART_S
            name = _exclusive(kind, where)
            is_free = not any(
                start_s < until_s and at_s < end_s and name & busy
                for start_s, end_s, busy in self._busy
            )
            if is_free or attempt == 99:
                break
        self._busy.append((at_s, until_s, name))
        return PlannedFault(at_s, kind, where, lasts_s, draw.uniform(-1.0, 1.0))

    def _where(self, kind: FaultKind) -> tuple[str, ...]:
        draw = self._random
        if kind in _OF_LINKS:
            return draw.choice(sorted(self._topology.links))
        if kind in _OF_CLIENTS:
            return (draw.choice(self._names),)
        if kind is FaultKind.EXTRA_LINK:
            return (EXTRA, *draw.sample(self._topology.brokers, 2))
        if kind is FaultKind.KILL_TWO:
            if draw.random() < 0.5:  # Neighbours have to recover from each other.
                return draw.choice(sorted(self._topology.links))
            return tuple(draw.sample(self._topology.brokers, 2))
        if kind is FaultKind.CLOCK and draw.random() < 0.3:
            return (CLIENTS,)
        return (draw.choice(self._topology.brokers),)


#: The machine that all clients are on.
CLIENTS = "clients"
#: The broker with a link too many.
EXTRA = "X"
_OF_CLIENTS = (FaultKind.CLIENT, FaultKind.SECOND, FaultKind.TAKE_OVER)
_OF_LINKS = (FaultKind.CUT, FaultKind.CUT_ONE_WAY, FaultKind.SLOW, FaultKind.DROP)


def _exclusive(kind: FaultKind, where: tuple[str, ...]) -> frozenset[str]:
    """What a fault has for itself."""
    if kind is FaultKind.EXTRA_LINK:
        return frozenset({EXTRA})
    return frozenset({"-".join(where)} if kind in _OF_LINKS else where)


def _person(
    name: str, topology: Topology, seconds: float, content: RandomContent, random: Random
) -> PersonPlan:
    author = _Author(topology, content, random)
    steps = [(0.0, step) for step in author.opening()]
    at_s = 0.0
    while (at_s := at_s + random.expovariate(1.0 / STEP_S)) < seconds:
        steps += [(at_s, step) for step in author.next_steps()]
    return PersonPlan(name, random.choice(topology.brokers), tuple(steps))


class _Author:
    """Writes what one client does; keeps what it has advertised and subscribed to."""

    def __init__(self, topology: Topology, content: RandomContent, random: Random) -> None:
        self._brokers = topology.brokers
        self._content = content
        self._random = random
        self._advertised: dict[int, Filter] = {}
        self._subscribed: list[int] = []
        self._advertisements = self._subscriptions = 0

    def opening(self) -> list[NemesisStep]:
        """Something to publish, and wide enough an interest for most of it to be delivered."""
        wide = self._random.choice(WIDE)
        self._subscribed.append(self._subscriptions)
        self._subscriptions += 1
        return [*self._advertise(), SubscribeStep(wide), *self._subscribe(), *self._subscribe()]

    def next_steps(self) -> list[NemesisStep]:
        draw = self._random
        what = draw.choices(
            (PublishStep, SubscribeStep, UnsubscribeStep, AdvertiseStep, UnadvertiseStep, MoveStep),
            (75, 8, 6, 4, 3, 6),
        )[0]
        if what is PublishStep:
            return self._publish()
        if what is SubscribeStep:
            return self._subscribe()
        if what is UnsubscribeStep and self._subscribed:
            number = self._subscribed.pop(draw.randrange(len(self._subscribed)))
            return [UnsubscribeStep(number)]
        if what is UnadvertiseStep and len(self._advertised) > 1:
            number = draw.choice(list(self._advertised))
            del self._advertised[number]
            return [UnadvertiseStep(number)]
        if what is MoveStep:
            return [MoveStep(draw.choice(self._brokers))]
        return self._advertise()

    def _publish(self) -> list[NemesisStep]:
        steps: list[NemesisStep] = []
        number, filter = self._random.choice(list(self._advertised.items()))
        size = self._random.randint(1, BURST_MAX)
        for _ in range(DRAWS_MAX):
            content = self._content.content(filter)
            if filter.permits(content) and len(steps) < size:
                steps.append(PublishStep(content, number))
        return steps

    def _subscribe(self) -> list[NemesisStep]:
        filter = self._satisfiable(every_attribute=False)
        self._subscribed.append(self._subscriptions)
        self._subscriptions += 1
        return [SubscribeStep(filter)]

    def _advertise(self) -> list[NemesisStep]:
        filter = self._satisfiable(every_attribute=True)
        self._advertised[self._advertisements] = filter
        self._advertisements += 1
        return [AdvertiseStep(filter)]

    def _satisfiable(self, *, every_attribute: bool) -> Filter:
        while True:
            filter = self._content.filter(every_attribute=every_attribute)
            if filter.is_satisfiable:
                return filter
