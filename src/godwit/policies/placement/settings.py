"""Settings of POP and GRAPE.  Defaults are the thesis's where it has them.

They are also the table `[placement]` of network files; its key `policy` selects the class.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec

from godwit.errors import UsageError


class Metric(Enum):
    """The quantity that GRAPE minimises first."""

    LOAD = "load"
    DELAY = "delay"


class RelocationSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="policy"
):
    """Settings common to both policies."""

    dry_run: bool = False
    """Decide and report, but ask no publisher to move."""

    hold_s: float = 60.0
    """How long a publisher that has just moved, or did not move when asked, is left alone."""

    answer_timeout_s: float = 30.0
    """How long to wait for the answers of other brokers; then tracing starts again."""

    move_timeout_s: float = 60.0
    """How long a publisher that was asked to move has to leave; then it stays."""

    forget_s: float = 3600.0
    """How long the state of a silent publisher is kept."""

    def __post_init__(self) -> None:
        if self.hold_s < 0:
            raise UsageError(f"hold_s is {self.hold_s}; it must be 0 or more")
        for name in ("answer_timeout_s", "move_timeout_s", "forget_s"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be above 0")


class PopSettings(RelocationSettings, frozen=True, kw_only=True, tag="pop"):
    traces_per_decision: int = 100
    """The thesis's P_threshold."""

    traces_per_window: int = 50
    """The thesis's N: the most publications of a publisher that are traced in a window."""

    window_s: float = 60.0
    """The thesis's W."""

    newest_weight: float = 0.25
    """Weight of the last trace in the running averages."""

    counts_zeros: bool = True
    """Whether a branch that a traced publication did not take counts as 0 deliveries, or keeps its
    average.  If false, a branch where ten subscribers receive one publication in ten weighs as much
    as one where ten receive all."""

    hysteresis: float = 0.0
    """Deliveries for each publication by which a branch must exceed all others together."""

    def __post_init__(self) -> None:
        RelocationSettings.__post_init__(self)
        if self.traces_per_decision < 1 or self.traces_per_window < 1:
            raise UsageError("traces_per_decision and traces_per_window must be 1 or more")
        if self.window_s <= 0 or self.hysteresis < 0:
            raise UsageError("window_s must be above 0, and hysteresis 0 or more")
        if not 0 < self.newest_weight <= 1:
            raise UsageError(
                f"newest_weight is {self.newest_weight}; it must be above 0 and at most 1"
            )


class GrapeSettings(RelocationSettings, frozen=True, kw_only=True, tag="grape"):
    publications_per_session: int = 100
    """The thesis's G_threshold."""

    primary: Metric = Metric.LOAD
    weight_percent: float = 100.0
    """Weight of the primary metric.  With 100 the other only decides between equals; with 0 the
    primary metric does not count at all."""

    def __post_init__(self) -> None:
        RelocationSettings.__post_init__(self)
        if not 1 <= self.publications_per_session <= SESSION_MAX:
            raise UsageError(
                f"publications_per_session is {self.publications_per_session}; "
                f"it must be 1 to {SESSION_MAX}"
            )
        if not 0 <= self.weight_percent <= 100:
            raise UsageError(f"weight_percent is {self.weight_percent}; it must be 0 to 100")

    @property
    def needs_pings(self) -> bool:
        return self.primary is not Metric.LOAD or self.weight_percent < 100


#: Longest session: the thesis tries up to 12,800.
SESSION_MAX = 65_536

PlacementSettings: TypeAlias = PopSettings | GrapeSettings


def policy_of(settings: PlacementSettings) -> str:
    """The name of the policy in network files."""
    return str(type(settings).__struct_config__.tag)
