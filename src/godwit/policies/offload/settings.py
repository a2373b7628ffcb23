"""Settings of the load balancer of subscribers.  Defaults are the thesis's (table 7.1).

They are also the table `[balancing]` of network files.
"""

from __future__ import annotations

import msgspec

from godwit.errors import UsageError

#: Settings that are durations, rates or counts, and must be above 0.
POSITIVE = (
    "moves_per_s", "local_pie_period_s", "global_pie_period_s", "pie_heartbeat_periods",
    "pie_history", "delay_normalization_s", "stabilize_s", "stabilize_percentage",
    "local_detection_min_s", "global_detection_min_s", "global_request_limit",
    "global_rounds_max", "migration_timeout_s", "reply_timeout_s", "session_margin_s",
    "press_samples", "press_timeout_s", "balance_threshold", "lower_overload_threshold",
    "higher_overload_threshold",
)  # fmt: skip
#: Settings that may be 0.
NOT_NEGATIVE = (
    "hold_s", "pie_ratio_threshold", "pie_delay_threshold", "local_ratio_trigger",
    "local_delay_trigger", "global_ratio_trigger", "global_delay_trigger",
)  # fmt: skip
#: Pairs of settings: the first must not exceed the second.
ORDERED = (
    ("local_detection_min_s", "local_detection_max_s"),
    ("global_detection_min_s", "global_detection_max_s"),
    ("lower_overload_threshold", "higher_overload_threshold"),
    ("local_pie_period_s", "global_pie_period_s"),
)


class BalancingSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """The table `[balancing]` of network files."""

    algorithm: str = "thesis"
    """`thesis`: the input, match and output offload algorithms; `random`: the baseline."""

    pie: str = "plain"
    """`plain`: one subscription to load information; `adaptive`: one for each metric, bounded."""

    dry_run: bool = False
    """Decide and report, but ask no client to move."""

    hold_s: float = 60.0
    """How long a client that has just moved, or did not move when asked, is left alone."""

    moves_per_s: float = 100.0
    """How many clients may be asked to move in a second."""

    local_pie_period_s: float = 30.0
    """How often an edge broker considers publishing its load."""

    global_pie_period_s: float = 60.0
    """How often a cluster-head considers publishing the load of its cluster."""

    pie_ratio_threshold: float = 0.025
    """Input and output utilisation are published if they have changed by more."""

    pie_delay_threshold: float = 0.025
    """The same for the matching delay, in units of `delay_normalization_s`."""

    pie_heartbeat_periods: int = 5
    """The load is published at least once in so many periods."""

    pie_history: int = 10
    """The N of Adaptive PIE: published values that its bound is computed from."""

    lower_overload_threshold: float = 0.9
    """Above it a broker accepts no load; no acceptor is loaded beyond it."""

    higher_overload_threshold: float = 0.95
    """Above it a broker is overloaded."""

    local_ratio_trigger: float = 0.1
    """Utilisations of two edge brokers of a cluster that differ by more are unbalanced."""

    local_delay_trigger: float = 0.1
    """The same for matching delays, in units of `delay_normalization_s`."""

    global_ratio_trigger: float = 0.15
    """The same for the mean utilisations of two clusters."""

    global_delay_trigger: float = 0.15
    """The same for the mean matching delays of two clusters."""

    delay_normalization_s: float = 0.1
    """The thesis's Nf."""

    stabilize_s: float = 30.0
    """How long a load has to be steady after a session."""

    stabilize_percentage: float = 0.05
    """A load that has changed by no more is steady."""

    local_detection_min_s: float = 20.0
    local_detection_max_s: float = 40.0
    """An edge broker waits for a random time between the two from one detection to the next."""

    global_detection_min_s: float = 50.0
    global_detection_max_s: float = 70.0
    """The same for a cluster-head."""

    global_request_limit: int = 3
    """Requests of overloaded edge brokers that make their head start a global session."""

    global_rounds_max: int = 20
    """A global session ends after so many detections of its head, balanced or not."""

    migration_timeout_s: float = 5.0
    """The time to move N clients is N times this."""

    reply_timeout_s: float = 5.0
    """How long to wait for the answer to a request."""

    session_margin_s: float = 30.0
    """A session ends at the latest this long after sampling and moving should have ended, and
    if no client has arrived for so long."""

    press_samples: int = 50
    """The thesis's Np: publications that PRESS samples."""

    press_timeout_s: float = 30.0
    """How long PRESS samples at most."""

    balance_threshold: float = 0.005
    """Two brokers whose values differ by no more are balanced."""

    def __post_init__(self) -> None:
        if self.algorithm not in ("thesis", "random"):
            raise UsageError(f"algorithm is {self.algorithm!r}; it must be 'thesis' or 'random'")
        if self.pie not in ("plain", "adaptive"):
            raise UsageError(f"pie is {self.pie!r}; it must be 'plain' or 'adaptive'")
        for name in POSITIVE:
            if not getattr(self, name) > 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in NOT_NEGATIVE:
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        for low, high in ORDERED:
            if getattr(self, low) > getattr(self, high):
                raise UsageError(
                    f"{low} is {getattr(self, low)} and {high} is {getattr(self, high)};"
                    f" {low} must not be the higher one"
                )
