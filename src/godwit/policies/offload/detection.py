"""Detection: with which brokers, and how, this broker should balance its load.

Paper    Cheung, thesis 4.1.3, "Local Detection Algorithm" and "Global Detection Algorithm".
Words    Step 1, Step 2 -> overload, imbalance; broker-action list -> list of Candidate;
         observable edge brokers -> known.
Claim    The list has exactly the brokers with status OK that are lighter: by any amount in a
         metric that is overloaded here (step 1), by more than the trigger otherwise (step 2).

Departs  1. CPU utilisation is Ir up to 1, so that an overloaded input makes entries for "input" and
            for "match"; equal differences are in the order output, input, match (open).
         2. Memory above the higher threshold starts "match" (E40).
         3. A broker that is N/A, but not overloaded, may give load in step 2 (open).
         4. Step 2 gives way to brokers that are N/A only a few times in a row: one that cannot be
            relieved would stop the others for ever.
Tested   tests/policies/offload/test_detection.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.load_status import LoadStatus
from godwit.policies.offload.pie import Pie, PieValues
from godwit.policies.offload.settings import BalancingSettings

#: Detections in a row that give way to brokers that are N/A.
GIVES_WAY_MAX = 3
_ORDER = {OffloadAction.OUTPUT: 0, OffloadAction.INPUT: 1, OffloadAction.MATCH: 2}


@dataclass(frozen=True, slots=True)
class Triggers:
    """What counts as an imbalance."""

    ratio: float
    delay: float
    normalization_s: float

    @classmethod
    def local_of(cls, settings: BalancingSettings) -> Triggers:
        return cls(
            settings.local_ratio_trigger,
            settings.local_delay_trigger,
            settings.delay_normalization_s,
        )

    @classmethod
    def global_of(cls, settings: BalancingSettings) -> Triggers:
        return cls(
            settings.global_ratio_trigger,
            settings.global_delay_trigger,
            settings.delay_normalization_s,
        )

    def of(self, metric: OffloadAction) -> float:
        return self.delay if metric is OffloadAction.MATCH else self.ratio

    def are_balanced(self, a: PieValues, b: PieValues) -> bool:
        return all(
            abs(a.difference(b, metric, self.normalization_s)) <= self.of(metric)
            for metric in OffloadAction
        )


@dataclass(frozen=True, slots=True)
class Candidate:
    """A broker to ask, and what for."""

    partner: str
    action: OffloadAction
    difference: float


def utilisation_max(info: BrokerInfo) -> float:
    """The highest of the ratios that the overload thresholds are for."""
    return max(info.input_utilisation, info.output_utilisation, info.memory_utilisation)


def overloads(info: BrokerInfo, threshold: float) -> list[OffloadAction]:
    """What is overloaded here, as the actions against it."""
    found = []
    if info.output_utilisation > threshold:
        found.append(OffloadAction.OUTPUT)
    if info.input_utilisation > threshold:
        found.append(OffloadAction.INPUT)
    if info.cpu_utilisation > threshold or info.memory_utilisation > threshold:
        found.append(OffloadAction.MATCH)
    return found


def overload_candidates(
    own: BrokerInfo, actions: Iterable[OffloadAction], known: Iterable[Pie], threshold: float
) -> list[Candidate]:
    """Step 1: against an overload, any lighter broker."""
    found = []
    for pie in known:
        if pie.status is not LoadStatus.OK:
            continue
        for action in actions:
            difference = _ratio(own, action, threshold) - _ratio_of(pie, own, action, threshold)
            if difference > 0:
                found.append(Candidate(pie.broker, action, difference))
    return _sorted(found)


def _ratio(own: BrokerInfo, action: OffloadAction, threshold: float) -> float:
    match action:
        case OffloadAction.OUTPUT:
            return own.output_utilisation
        case OffloadAction.INPUT:
            return own.input_utilisation
        case OffloadAction.MATCH:
            return own.cpu_utilisation if _is_cpu(own, threshold) else own.memory_utilisation


def _ratio_of(pie: Pie, own: BrokerInfo, action: OffloadAction, threshold: float) -> float:
    if action is OffloadAction.OUTPUT:
        return pie.values.output
    if action is OffloadAction.MATCH and not _is_cpu(own, threshold):
        info = pie.details.info
        return 0.0 if info is None else info.memory_utilisation
    return pie.values.input


def _is_cpu(own: BrokerInfo, threshold: float) -> bool:
    """Whether it is the CPU, and not only the memory, that is overloaded."""
    return own.cpu_utilisation > threshold


def imbalance_candidates(
    own: PieValues, known: Iterable[Pie], triggers: Triggers
) -> list[Candidate]:
    """Step 2: brokers that are lighter by more than the trigger."""
    found = []
    for pie in known:
        if pie.status is not LoadStatus.OK:
            continue
        for metric in OffloadAction:
            difference = own.difference(pie.values, metric, triggers.normalization_s)
            if difference > triggers.of(metric):
                found.append(Candidate(pie.broker, metric, difference))
    return _sorted(found)


def _sorted(candidates: list[Candidate]) -> list[Candidate]:
    """The largest difference first; then output, input, match; then the lowest name."""
    return sorted(candidates, key=lambda c: (-c.difference, _ORDER[c.action], c.partner))


def gives_way(known: Iterable[Pie]) -> bool:
    """Whether another broker is overloaded, and comes first."""
    return any(pie.status is LoadStatus.NOT_AVAILABLE for pie in known)


def balanced_set(own: PieValues, known: Iterable[Pie], triggers: Triggers) -> tuple[str, ...]:
    """The brokers whose latest load is within the triggers of this one's."""
    return tuple(pie.broker for pie in known if triggers.are_balanced(own, pie.values))
