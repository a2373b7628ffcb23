"""One direction of a link, or of the connection between a broker and its clients."""

from __future__ import annotations

from random import Random

from godwit.simulation.resources import LinkOptions


class Wire:
    """One direction of a link: never faster than its options say, never out of order."""

    __slots__ = (
        "_blocked_until_s", "_disturbed_until_s", "_extra_s", "_last_arrival_s", "_latency_s_min",
        "_random", "_slow_until_s", "_tail_per_s",
    )  # fmt: skip

    def __init__(self, options: LinkOptions, random: Random) -> None:
        self._latency_s_min = options.latency_s_min
        tail_s = options.latency_s_mean - options.latency_s_min
        self._tail_per_s = 1.0 / tail_s if tail_s else None
        """The inverse of the mean of the tail, if there is one."""
        self._random = random
        self._last_arrival_s = 0.0
        self._blocked_until_s = 0.0
        self._slow_until_s = 0.0
        self._extra_s = 0.0
        self._disturbed_until_s = 0.0
        """The later one of the two: this is compared for every copy of every message."""

    def block(self, until_s: float) -> None:
        """Let nothing arrive until then."""
        self._blocked_until_s = max(self._blocked_until_s, until_s)
        self._disturbed_until_s = max(self._disturbed_until_s, until_s)

    def slow_down(self, until_s: float, extra_s: float) -> None:
        """What departs until then takes so much longer."""
        self._slow_until_s = max(self._slow_until_s, until_s)
        self._extra_s = max(self._extra_s, extra_s)
        self._disturbed_until_s = max(self._disturbed_until_s, until_s)

    def arrival_s(self, departs_s: float) -> float:
        arrival_s = departs_s + self._latency_s_min
        if self._tail_per_s is not None:
            arrival_s += self._random.expovariate(self._tail_per_s)
        if departs_s < self._disturbed_until_s:
            if departs_s < self._slow_until_s:
                arrival_s += self._extra_s
            arrival_s = max(arrival_s, self._blocked_until_s)
        # A comparison, not max(): this runs for every copy of every message.
        if arrival_s < self._last_arrival_s:  # noqa: PLR1730
            arrival_s = self._last_arrival_s
        self._last_arrival_s = arrival_s
        return arrival_s

    def end_s(self, now_s: float) -> float:
        """When everything that was sent has arrived, and the other end notices the closing."""
        return max(now_s + self._latency_s_min, self._last_arrival_s)
