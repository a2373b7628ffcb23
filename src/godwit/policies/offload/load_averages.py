"""The load of this broker between two detections: means over the last windows of its meters.

Paper    Cheung, thesis 4.1.3: the detector decides on the average load since its last run.
Words    Ir, d, Or -> those of BrokerInfo; d = m n + b -> MatchingDelayModel, fed from here.
Departs  1. A window of the meters is read once, by a timer; publications pass unwatched.
         2. After a session only windows that began after it count: else the load of before would
            start the next one.
         3. Or in an overload is above 1: what is used is then what is asked for.
         4. The load of a session's outcome has the matching delay that was measured, not that of
            the line: else the line would be compared with itself.
Tested   tests/policies/offload/test_parts.py.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from math import inf

from godwit.broker.meters import Load
from godwit.broker.modules import BrokerView
from godwit.policies.offload.broker_load import BrokerInfo
from godwit.policies.offload.pie import PieValues
from godwit.profile.matching_delay import MatchingDelay, MatchingDelayModel

#: Before anything was matched.
NO_DELAY = MatchingDelay(0.0, 0.0)


class LoadAverages:
    def __init__(self, view: BrokerView, *, over_s: float) -> None:
        """Means are over the windows of the last `over_s`, at least one."""
        self._view = view
        self._windows: deque[Load] = deque(maxlen=max(1, round(over_s / view.meters.window_s)))
        self._model = MatchingDelayModel()
        self._subscriptions = view.subscription_count
        self._skip = 0
        self._last: Load | None = None
        self._before: Load | None = None
        """Counts as long as there is no other."""

    def read(self, now_s: float) -> None:
        """Take in the last window of the meters, unless it is known; call it once a window."""
        load = self._view.meters.load(now_s)
        if load is self._last or load.window_s == 0.0:
            return
        self._last = load
        before, self._subscriptions = self._subscriptions, self._view.subscription_count
        if load.messages_in_per_s:
            # The mean number of subscriptions of the window, as its delay is the mean.
            self._model.add((before + self._subscriptions) // 2, load.matching_delay_s)
        if self._skip:
            self._skip -= 1
            return
        self._windows.append(load)

    def forget(self) -> None:
        """A session is over: what was measured up to now does not count."""
        if self._windows:
            self._before = self._windows[-1]
            self._windows.clear()
        self._skip = 1  # The window that has begun.

    def first_and_last(self) -> tuple[PieValues | None, PieValues | None]:
        """The loads of the first and the last window that count; None before there are two."""
        if len(self._windows) < 2:
            return None, None
        first, last = self._windows[0], self._windows[-1]
        return _values(first), _values(last)

    def info(self) -> BrokerInfo:
        """The load of this broker now."""
        view = self._view
        windows = self._windows or ([] if self._before is None else [self._before])
        total = view.output_bandwidth_bytes_s
        if total == inf:
            used = _mean([load.bytes_out_per_s for load in windows])
        else:
            used = total * _mean([load.output_utilisation for load in windows])
        subscriptions = view.subscription_count
        memory = view.memory_utilisation
        return BrokerInfo(
            broker=view.broker,
            input_per_s=_mean([load.publications_per_s for load in windows]),
            subscriptions=subscriptions,
            matching=self._model.line or NO_DELAY,
            output_used_bytes_s=used,
            output_total_bytes_s=total,
            memory_utilisation=memory,
            memory_per_subscription=memory / subscriptions if subscriptions else 0.0,
        )

    def measured(self) -> BrokerInfo:
        """As `info`, with the matching delay of the windows instead of the line."""
        info = self.info()
        delays_s = [load.matching_delay_s for load in self._windows if load.messages_in_per_s]
        if not delays_s:
            return info
        return replace(info, matching=MatchingDelay(0.0, _mean(delays_s)))


def _values(load: Load) -> PieValues:
    return PieValues(load.input_utilisation, load.matching_delay_s, load.output_utilisation)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
