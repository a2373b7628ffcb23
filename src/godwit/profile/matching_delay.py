"""The matching delay as a linear function of the number of subscriptions.

Paper    Cheung, thesis 4.2.2, equation (4.9): d = m n + b.
Words    d -> delay_s; n -> subscriptions; m, b -> slope_s, intercept_s.
Claim    The line passes through the bucket that was updated last, and its slope is the mean of the
         slopes from there to all other buckets: it follows the local slope of any curve.  Samples
         of a line give that line, if the buckets are at least `GAP_MIN` apart.
Departs  1. A bucket's running average is a mean of its first samples, then the newest weighs 0.25
            (open in the thesis).
         2. A sample is an outlier against the mean of the last five samples that were kept (open):
            with outliers in that mean, one spike would make outliers of the normal samples.
         3. With one bucket the slope is 0; it is never negative (open).
         4. If there are too many buckets, the smallest goes, but never the one just updated: else
            the model could not follow a broker that loses subscriptions.
         5. A bucket is where its samples were, not at its middle: for a broker with 14
            subscriptions the middle, 10, is a third off.  Buckets that are closer than `GAP_MIN`
            count as that far apart: else the noise of two samples would make any slope.
Tested   tests/profile/test_matching_delay.py: test vector 7, and a plain version of the rules.

Deterministic: the same samples in the same order give the same line.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import copysign

from godwit.profile.running_average import RunningMean

BUCKET_WIDTH = 10
BUCKETS_MAX = 10
#: Samples that an outlier is compared with.
RECENT = 5
OUTLIER_ABOVE, OUTLIER_BELOW = 1.5, 0.5
#: Outliers ignored in a row; the next is taken.
IGNORED_MAX = 2
#: A line with a negative intercept still gives a delay above 0.
DELAY_MIN_S = 1e-9
GAP_MIN = BUCKET_WIDTH / 2


@dataclass(frozen=True, slots=True)
class MatchingDelay:
    """d(n) = m n + b."""

    slope_s: float
    intercept_s: float

    def delay_s(self, subscriptions: int) -> float:
        return max(DELAY_MIN_S, self.slope_s * subscriptions + self.intercept_s)

    def rate_max(self, subscriptions: int) -> float:
        """The thesis's mr: publications per second that can be matched."""
        return 1.0 / self.delay_s(subscriptions)


def bucket(subscriptions: int) -> int:
    """The nearest ten: 5 to 14 are in bucket 10."""
    return (subscriptions + BUCKET_WIDTH // 2) // BUCKET_WIDTH * BUCKET_WIDTH


class _Bucket:
    """Samples with about as many subscriptions: the averages of both."""

    __slots__ = ("_delay_s", "_subscriptions")

    def __init__(self) -> None:
        self._subscriptions = RunningMean()
        self._delay_s = RunningMean()

    def add(self, subscriptions: int, delay_s: float) -> None:
        self._subscriptions.add(subscriptions)
        self._delay_s.add(delay_s)

    @property
    def subscriptions(self) -> float:
        return self._subscriptions.value

    @property
    def delay_s(self) -> float:
        return self._delay_s.value

    def slope_s(self, other: _Bucket) -> float:
        gap = self.subscriptions - other.subscriptions
        return (self.delay_s - other.delay_s) / copysign(max(abs(gap), GAP_MIN), gap)


class MatchingDelayModel:
    __slots__ = ("_buckets", "_ignored", "_last", "_recent")

    def __init__(self) -> None:
        self._buckets: dict[int, _Bucket] = {}
        self._last = 0
        self._recent: deque[float] = deque(maxlen=RECENT)
        self._ignored = 0

    def add(self, subscriptions: int, delay_s: float) -> None:
        """A message was matched against so many subscriptions."""
        if self._is_outlier(delay_s) and self._ignored < IGNORED_MAX:
            self._ignored += 1
            return
        self._ignored = 0
        self._recent.append(delay_s)
        self._last = bucket(subscriptions)
        self._buckets.setdefault(self._last, _Bucket()).add(subscriptions, delay_s)
        if len(self._buckets) > BUCKETS_MAX:
            del self._buckets[min(n for n in self._buckets if n != self._last)]

    def _is_outlier(self, delay_s: float) -> bool:
        if len(self._recent) < RECENT:
            return False
        mean_s = sum(self._recent) / RECENT
        return delay_s > OUTLIER_ABOVE * mean_s or delay_s < OUTLIER_BELOW * mean_s

    @property
    def line(self) -> MatchingDelay | None:
        """The present fit; None before the first sample."""
        if not self._buckets:
            return None
        last = self._buckets[self._last]
        slopes = [last.slope_s(each) for each in self._buckets.values() if each is not last]
        slope_s = max(0.0, sum(slopes) / len(slopes)) if slopes else 0.0
        return MatchingDelay(slope_s, last.delay_s - slope_s * last.subscriptions)
