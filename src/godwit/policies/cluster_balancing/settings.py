"""Settings of the dynamic balancing in clusters."""

from __future__ import annotations

import msgspec

from godwit.errors import UsageError


class ClusterBalancingSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True
):
    threshold: float = 150.0
    """Messages in and out in a time unit; a broker with more is overloaded (phi R of the paper)."""

    unit_s: float = 1.0
    """A time unit."""

    window_s: float = 5.0
    """Loads are averages over this time."""

    answer_s: float = 1.0
    """How long a broker waits for the answers of its mates."""

    rest_windows: int = 2
    """After a decision a broker makes no other for so many windows: its load has to follow."""

    shun_windows: int = 6
    """A helper that has given work back is not asked to help for so long; and routes of publishers
    that were silent for so long are forgotten."""

    stop_s_min: float = 5.0
    stop_s_max: float = 15.0
    """A broker that is overloaded by subscriptions takes none for a time between these."""

    def __post_init__(self) -> None:
        if self.threshold <= 0 or self.unit_s <= 0:
            raise UsageError("cluster balancing: threshold and unit_s must be above 0")
        if self.answer_s >= self.window_s:
            raise UsageError("cluster balancing: answer_s must be below window_s")
        if not 0 < self.stop_s_min <= self.stop_s_max:
            raise UsageError("cluster balancing: 0 < stop_s_min <= stop_s_max")
