"""Adaptive PIE: a broker subscribes only to the loads of brokers that it could give load to.

Paper    Cheung, thesis 4.1.3, "Adaptive PIE", equation (4.5).
Words    S_new, S_current -> bound; L_current -> own value; T_L -> trigger; L_stddev -> standard
         deviation of the last N published values, N -> pie_history.
Claim    Brokers with a load above the bounds send nothing here; with a constant load the bounds do
         not change.

    (4.5)  S = L - T + stddev, from 0 to 1, for each of input, match and output

Departs  1. Seconds for the matching delay: its trigger is then the delay trigger times Nf (open).
         2. What no bound admits any longer is forgotten: it would never be renewed.
         3. With N values or fewer the deviation is that of those; of none or one it is 0.
Tested   tests/policies/offload/test_adaptive_pie.py.

D1  The new subscription is sent before the old one is withdrawn.  (ControlPost)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from statistics import pstdev

from godwit.content.filters import Filter
from godwit.policies.offload.broker_load import OffloadAction
from godwit.policies.offload.pie import Pie, PieValues

METRICS = tuple(OffloadAction)


class AdaptiveBounds:
    """The upper bounds of the three subscriptions."""

    def __init__(
        self, *, ratio_trigger: float, delay_trigger: float, normalization_s: float, history: int
    ) -> None:
        self._triggers = {
            OffloadAction.INPUT: ratio_trigger,
            OffloadAction.MATCH: delay_trigger * normalization_s,
            OffloadAction.OUTPUT: ratio_trigger,
        }
        self._published: deque[PieValues] = deque(maxlen=history)
        self.bounds = dict.fromkeys(METRICS, 0.0)

    def on_published(self, values: PieValues) -> None:
        self._published.append(values)

    def renew(self, own: PieValues, known: Iterable[Pie]) -> list[OffloadAction]:
        """Adjust the bounds; the metrics whose subscription has to be replaced."""
        loads = [pie.values for pie in known]
        changed = []
        for metric in METRICS:
            bound = self._bound(own, metric)
            current = self.bounds[metric]
            filters_out = any(bound < load.value(metric) < current for load in loads)
            if bound > current + self._triggers[metric] or (bound < current and filters_out):
                self.bounds[metric] = bound
                changed.append(metric)
        return changed

    def _bound(self, own: PieValues, metric: OffloadAction) -> float:
        """(4.5)."""
        history = [values.value(metric) for values in self._published]
        deviation = pstdev(history) if len(history) > 1 else 0.0
        return min(1.0, max(0.0, own.value(metric) - self._triggers[metric] + deviation))

    def admits(self, values: PieValues) -> bool:
        """Whether one of the subscriptions matches such a load."""
        return any(values.value(metric) < self.bounds[metric] for metric in METRICS)


def bounded_filter(kind: str, cluster: str, metric: OffloadAction, bound: float) -> Filter:
    return Filter.parse(
        f"class = '{kind}' and cluster = '{cluster}' and {metric.value} < {bound!r}"
    )


def plain_filter(kind: str, cluster: str) -> Filter:
    return Filter.parse(f"class = '{kind}' and cluster = '{cluster}'")
