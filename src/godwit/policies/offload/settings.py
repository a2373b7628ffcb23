"""Settings of the load balancer of subscribers.  Defaults are the thesis's (table 7.1)."""

from __future__ import annotations

import msgspec

from godwit.errors import UsageError


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
    """How long a client that was asked and did not move is left alone."""

    moves_per_s: float = 100.0
    """How many clients may be asked to move in a second."""

    local_pie_period_s: float = 30.0
    global_pie_period_s: float = 60.0
    pie_ratio_threshold: float = 0.025
    pie_delay_threshold: float = 0.025
    pie_history: int = 10
    """The N of Adaptive PIE."""

    lower_overload_threshold: float = 0.9
    """Above it a broker accepts no load; no acceptor is loaded beyond it."""

    higher_overload_threshold: float = 0.95
    """Above it a broker is overloaded."""

    local_ratio_trigger: float = 0.1
    local_delay_trigger: float = 0.1
    global_ratio_trigger: float = 0.15
    global_delay_trigger: float = 0.15
    delay_normalization_s: float = 0.1
    """The thesis's Nf."""

    stabilize_s: float = 30.0
    stabilize_percentage: float = 0.05
    local_detection_min_s: float = 20.0
    local_detection_max_s: float = 40.0
    global_detection_min_s: float = 50.0
    global_detection_max_s: float = 70.0
    global_request_limit: int = 3
    migration_timeout_s: float = 5.0
    """For each client that moves."""

    reply_timeout_s: float = 5.0
    session_margin_s: float = 30.0
    """A session ends at the latest this long after sampling and moving should have ended."""

    press_samples: int = 50
    """The thesis's Np."""

    press_timeout_s: float = 30.0
    balance_threshold: float = 0.005
    """Two brokers whose values differ by no more are balanced."""

    def __post_init__(self) -> None:
        if self.algorithm not in ("thesis", "random"):
            raise UsageError(f"algorithm is {self.algorithm!r}; it must be 'thesis' or 'random'")
        if self.pie not in ("plain", "adaptive"):
            raise UsageError(f"pie is {self.pie!r}; it must be 'plain' or 'adaptive'")
        for name in ("balance_threshold", "delay_normalization_s", "press_samples"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be above 0")
