"""Why a cluster stays uneven, for operators: "cannot be balanced, because ...".

Not in the thesis.  A session that finds nothing to move says why.  If each candidate of a detection
has failed so, that is reported once, with the least maximum that any assignment of the subscribers
would have (load_bounds.py): how much better any balancer could do.

U1  Reported again only if the reason, the metric or the partner is another one.
U2  It stands until clients have moved or the difference has gone, also while the partner is in a
    session with another broker.
Tested   tests/policies/offload/test_mediation.py, tests/policies/offload/test_load_bounds.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from godwit.broker.effects import Decision
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.load_bounds import LoadBounds, load_bounds
from godwit.policies.offload.pie import Pie

CANNOT_BALANCE = "cannot balance"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the last session moved no client."""

    partner: str
    action: OffloadAction
    because: str


@dataclass(frozen=True, slots=True)
class LargestSubscriber:
    """Of this broker, when it was sampled last."""

    bytes_s: float
    used_bytes_s: float
    """Of all of its subscribers together."""

    def now_bytes_s(self, used_bytes_s: float) -> float:
        """What it is taken for if all together take this now: never more than its part of that."""
        if self.used_bytes_s <= 0:
            return 0.0
        return min(self.bytes_s, self.used_bytes_s) * min(1.0, used_bytes_s / self.used_bytes_s)


class Obstacles:
    def __init__(self, broker: str) -> None:
        self.present: Obstacle | None = None
        """What stands in the way, if each candidate has failed."""
        self.largest_subscriber: LargestSubscriber | None = None
        """None if none was found, or it may have left since (B1 of load_bounds.py)."""
        self.last: Obstacle | None = None
        """Of the last session that moved no client."""
        self._broker = broker

    def on_failed(self, obstacle: Obstacle) -> None:
        self.last = obstacle

    def on_success(self) -> None:
        """Clients have moved, or there is nothing to balance."""
        self.last = self.present = self.largest_subscriber = None

    def on_departed(self) -> None:
        """A client has left; it may have been the largest one."""
        self.largest_subscriber = None

    def on_all_failed(self, own: BrokerInfo, known: Iterable[Pie]) -> list[Decision]:
        """A detection has candidates, and all of them are blocked."""
        if self.last is None or self.last == self.present:
            return []
        obstacle = self.present = self.last
        bounds = self.bounds(own, known)
        reason: dict[str, float | str] = {
            "metric": obstacle.action.value,
            "because": obstacle.because,
            "input": own.input_utilisation,
            "match_s": own.matching_delay_s,
            "output": own.output_utilisation,
            "input_bound": bounds.input_utilisation,
            "match_bound_s": bounds.matching_delay_s,
            "output_bound": bounds.output_utilisation,
        }
        target = obstacle.partner
        return [Decision(CANNOT_BALANCE, self._broker, self._broker, target, reason)]

    def bounds(self, own: BrokerInfo, known: Iterable[Pie]) -> LoadBounds:
        """No assignment of the subscribers of these brokers has lower maxima."""
        infos = [pie.details.info for pie in known]
        largest = self.largest_subscriber
        bytes_s = 0.0 if largest is None else largest.now_bytes_s(own.output_used_bytes_s)
        return load_bounds(
            [own, *(info for info in infos if info is not None)],
            largest_subscriber_bytes_s=bytes_s,
        )

    def in_words(self, own: BrokerInfo, known: Iterable[Pie]) -> str | None:
        """For an operator; None if there is no obstacle."""
        obstacle = self.present
        if obstacle is None:
            return None
        bounds = self.bounds(own, known)
        present, bound = {
            OffloadAction.INPUT: (own.input_utilisation, bounds.input_utilisation),
            OffloadAction.MATCH: (own.matching_delay_s, bounds.matching_delay_s),
            OffloadAction.OUTPUT: (own.output_utilisation, bounds.output_utilisation),
        }[obstacle.action]
        return (
            f"the {obstacle.action.value} of {self._broker} ({present:.3g}) cannot be balanced with"
            f" {obstacle.partner}, because: {obstacle.because}; no assignment of the subscribers"
            f" has a maximum below {bound:.3g}"
        )
