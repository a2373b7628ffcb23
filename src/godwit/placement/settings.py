"""What can be set about POP and GRAPE.  Defaults are the thesis's, where it has one.

These are the tables `[placement]` of network files, too: the key `policy` tells which it is.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec

from godwit.errors import UsageError


class Metric(Enum):
    """What GRAPE minimises first."""

    LOAD = "load"
    DELAY = "delay"


class RelocationSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="policy"
):
    """What both have."""

    dry_run: bool = False
    """Decide and report, and ask nobody to move."""

    hold_s: float = 60.0
    """A publisher that has just moved, or was asked to and did not, is left alone for so long."""

    answer_timeout_s: float = 30.0
    """Brokers that were asked and have not answered by then will not: begin anew."""

    move_timeout_s: float = 60.0
    """A publisher that was asked to move and is still here by then stays."""

    forget_s: float = 3600.0
    """What was learnt about a publisher that is silent for so long is forgotten."""

    def __post_init__(self) -> None:
        if self.hold_s < 0:
            raise UsageError(f"a hold time of {self.hold_s} s; 0 or more is possible")
        for name in ("answer_timeout_s", "move_timeout_s", "forget_s"):
            if getattr(self, name) <= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; more than 0 is possible")


class PopSettings(RelocationSettings, frozen=True, kw_only=True, tag="pop"):
    traces_per_decision: int = 100
    """The thesis's P_threshold."""

    traces_per_window: int = 50
    """The thesis's N: at most so many publications of a publisher are traced in a window."""

    window_s: float = 60.0
    """The thesis's W."""

    newest_weight: float = 0.25
    """Of the last trace in the running averages."""

    counts_zeros: bool = True
    """Whether a branch that a traced publication did not take has delivered it to nobody, or is
    left as it was.  Without, a branch that wants one publication in ten, by ten subscribers, weighs
    as much as one that wants each, by ten."""

    hysteresis: float = 0.0
    """By how many deliveries for each publication a branch must outweigh all others together."""

    def __post_init__(self) -> None:
        RelocationSettings.__post_init__(self)
        if self.traces_per_decision < 1 or self.traces_per_window < 1:
            raise UsageError(
                "POP decides after one trace or more, and traces one or more at a time"
            )
        if self.window_s <= 0 or self.hysteresis < 0:
            raise UsageError("a window takes some time, and a hysteresis is 0 or more")
        if not 0 < self.newest_weight <= 1:
            raise UsageError(f"the newest trace weighs {self.newest_weight}; above 0 to 1 can be")


class GrapeSettings(RelocationSettings, frozen=True, kw_only=True, tag="grape"):
    publications_per_session: int = 100
    """The thesis's G_threshold."""

    primary: Metric = Metric.LOAD
    weight_percent: float = 100.0
    """How much the primary metric counts.  With 100 the other only decides between equals; with 0
    the primary one does not count at all."""

    def __post_init__(self) -> None:
        RelocationSettings.__post_init__(self)
        if not 1 <= self.publications_per_session <= SESSION_MAX:
            raise UsageError(f"a session traces 1 to {SESSION_MAX} publications")
        if not 0 <= self.weight_percent <= 100:
            raise UsageError(f"a weight of {self.weight_percent}%; 0 to 100 is possible")

    @property
    def needs_pings(self) -> bool:
        return self.primary is not Metric.LOAD or self.weight_percent < 100


#: Longest session: the thesis tries up to 12,800.
SESSION_MAX = 65_536

PlacementSettings: TypeAlias = PopSettings | GrapeSettings


def policy_of(settings: PlacementSettings) -> str:
    """As it is called in network files."""
    return str(type(settings).__struct_config__.tag)
