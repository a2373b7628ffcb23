"""Figures over time, the last ones only.  Pure.

H1  A series has at most POINTS points, and there are at most SERIES_MAX series: the first that are
    recorded, until some of them are forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping

from godwit.api.dashboard_api import BrokerRow, History, Overview
from godwit.api.network_api import Figure

POINTS = 450
SERIES_MAX = 250
#: The name of the series of the whole network.
NETWORK = ""
BROKER_FIGURES = (
    "load", "input_utilisation", "output_utilisation", "matching_delay_s", "publications_per_s",
    "output_bytes_per_s", "queue_bytes", "clients",
)  # fmt: skip


class FigureSeries:
    def __init__(self) -> None:
        self._series: dict[str, deque[tuple[float, dict[str, Figure]]]] = {}

    def record(self, overview: Overview) -> None:
        totals, balance = overview.totals, overview.balance
        self._add(
            NETWORK,
            overview.at_s,
            {
                "publications_per_s": totals.publications_per_s,
                "deliveries_per_s": totals.deliveries_per_s,
                "output_bytes_per_s": totals.output_bytes_per_s,
                "queue_bytes": totals.queue_bytes,
                "clients": totals.clients,
                "mean": balance.mean,
                "maximum": balance.maximum,
                "cov": balance.cov,
                "lower_bound": balance.lower_bound,
            },
        )
        for row in overview.brokers:
            self._add(row.broker, overview.at_s, _figures(row))
        self._forget({NETWORK, *(row.broker for row in overview.brokers)})

    def _add(self, name: str, at_s: float, figures: Mapping[str, Figure]) -> None:
        if name not in self._series and len(self._series) >= SERIES_MAX:
            return
        series = self._series.setdefault(name, deque(maxlen=POINTS))
        series.append((at_s, dict(figures)))

    def _forget(self, present: Collection[str]) -> None:
        """Make room: brokers that are not shown any more, once there are too many."""
        if len(self._series) >= SERIES_MAX:
            for name in self._series.keys() - present:
                del self._series[name]

    def history(self, name: str) -> History:
        points = list(self._series.get(name, ()))
        names = points[-1][1] if points else {}
        return History(
            at_s=[at_s for at_s, _ in points],
            figures={name: [figures.get(name) for _, figures in points] for name in names},
        )


def _figures(row: BrokerRow) -> dict[str, Figure]:
    return {name: getattr(row, name) for name in BROKER_FIGURES}
