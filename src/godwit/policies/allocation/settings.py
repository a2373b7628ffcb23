"""Settings of a plan.  They are also options of `godwit croc plan`."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import msgspec

from godwit.errors import UsageError


class AllocationAlgorithm(Enum):
    """How subscriptions are assigned to brokers, and which tree connects them."""

    MANUAL = "manual"
    AUTOMATIC = "automatic"
    PAIRWISE_K = "pairwise-k"
    PAIRWISE_N = "pairwise-n"
    FBF = "fbf"
    BIN_PACKING = "bin-packing"
    CRAM_INTERSECT = "cram-intersect"
    CRAM_XOR = "cram-xor"
    CRAM_IOS = "cram-ios"
    CRAM_IOU = "cram-iou"


BASELINES = (
    AllocationAlgorithm.MANUAL,
    AllocationAlgorithm.AUTOMATIC,
    AllocationAlgorithm.PAIRWISE_K,
    AllocationAlgorithm.PAIRWISE_N,
)
ALGORITHMS = tuple(algorithm.value for algorithm in AllocationAlgorithm)

#: `exact`: bounds that never miss the closest partner.  `stop-rule`: the thesis's.
Search = Literal["exact", "stop-rule"]
#: Which plan is wanted: the one with the fewest brokers, or the thesis's.
Keep = Literal["fewest", "last"]


class AllocationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    algorithm: str = AllocationAlgorithm.CRAM_IOU.value
    seed: int = 0
    """For what is random: FBF's order, and the baselines."""

    search: Search = "exact"
    keep: Keep = "fewest"
    one_to_many: bool = True
    """CRAM's third optimisation."""

    compensate: bool | None = None
    """Whether loads are raised as the thesis does for short vectors.  None: if they are short."""

    overlay: bool = True
    """Whether to construct a tree.  False: all brokers with subscriptions below the first one."""

    overlay_optimisations: bool = True
    relocate_publishers: bool | None = None
    """Whether GRAPE places the publishers.  False: they stay at the root, or at random brokers in
    the baselines.  None: as in the thesis, not in the baselines."""

    improve_s: float = 0.0
    """How long to search for a better plan."""

    improve_steps: int = 0
    """How many steps to search, if no time is given: the same plan on every machine."""

    stay: float = 0.0
    """From 0, the best plan, to 1, the fewest moves."""

    automatic_fanout: int = 8
    """The most children of a broker in AUTOMATIC's random tree (open in the thesis)."""

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise UsageError(
                f"algorithm is {self.algorithm!r}; it must be one of {', '.join(ALGORITHMS)}"
            )
        if self.search not in ("exact", "stop-rule"):
            raise UsageError(f"search is {self.search!r}; it must be 'exact' or 'stop-rule'")
        if self.keep not in ("fewest", "last"):
            raise UsageError(f"keep is {self.keep!r}; it must be 'fewest' or 'last'")
        if not 0 <= self.stay <= 1:
            raise UsageError(f"stay is {self.stay}; it must be 0 to 1")
        for name in ("improve_s", "improve_steps"):
            if not getattr(self, name) >= 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if self.automatic_fanout < 1:
            raise UsageError(f"automatic_fanout is {self.automatic_fanout}; it must be 1 or more")

    @property
    def is_baseline(self) -> bool:
        """Whether all brokers are used, whatever they can carry."""
        return self.algorithm_kind in BASELINES

    @property
    def uses_grape(self) -> bool:
        chosen = self.relocate_publishers
        return not self.is_baseline if chosen is None else chosen

    @property
    def links_directly(self) -> bool:
        """Whether brokers that only forward may be left out: not in the thesis's own plans."""
        return self.keep == "fewest" and self.overlay and self.overlay_optimisations

    @property
    def algorithm_kind(self) -> AllocationAlgorithm:
        return AllocationAlgorithm(self.algorithm)
