"""When a coordinator carries out a plan by itself: the settings, and the rule.  Pure.

    more brokers than now       at once: the load needs them
    fewer, or as many           if nothing has changed for `hold_s`, and it gains enough

R1  No plan with fewer than `fewest` brokers, or more than `most`, is carried out.
R2  Between two changes that are not needed there are at least `hold_s`.

docs/reshaping.md explains each key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec

from godwit.errors import UsageError
from godwit.policies.allocation.settings import AllocationAlgorithm, AllocationSettings

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class AutoscaleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    fewest: Count = 1
    """Brokers that run at least."""

    most: Count = 1_000
    """Brokers that run at most."""

    every_s: Seconds = 60.0
    """How often profiles are gathered, and a plan is made."""

    hold_s: Seconds = 600.0
    """How long nothing has changed before brokers stop, or clients move for less traffic."""

    gain: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.2
    """The share of brokers, or of the traffic, that a plan must save."""

    load: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.7
    """Plans use at most this share of the output bandwidth of a broker."""

    algorithm: str = AllocationAlgorithm.CRAM_IOU.value
    stay: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    """As of `godwit croc plan`."""

    dry_run: bool = False
    """Decide and log, but change nothing."""

    def __post_init__(self) -> None:
        if self.fewest > self.most:
            raise UsageError(f"fewest ({self.fewest}) is above most ({self.most})")
        self.allocation  # noqa: B018  It checks them.

    @property
    def allocation(self) -> AllocationSettings:
        return AllocationSettings(algorithm=self.algorithm, stay=self.stay)


@dataclass(frozen=True, slots=True)
class ScaleNow:
    """The network, and for how long it has been so."""

    brokers: int
    input_per_s: float
    """Publications that arrive at all brokers together."""

    unchanged_s: float


@dataclass(frozen=True, slots=True)
class ScalePlan:
    brokers: int
    input_per_s: float
    changes: bool = True
    """Whether it is not what the network is already."""


class ScaleVerdict(NamedTuple):
    applies: bool
    why: str


def verdict(now: ScaleNow, plan: ScalePlan, settings: AutoscaleSettings) -> ScaleVerdict:
    """Whether to carry out a plan, and why or why not."""
    if plan.brokers > settings.most:
        text = f"the load needs {plan.brokers} brokers, and {settings.most} are allowed"
        return ScaleVerdict(applies=False, why=text)
    if not plan.changes:
        return ScaleVerdict(applies=False, why="the network is as planned")
    if plan.brokers > now.brokers:
        text = f"the load needs {plan.brokers} brokers, and {now.brokers} run"
        return ScaleVerdict(applies=True, why=text)
    saved, what = _saved(now, plan)
    text = f"{saved:.0%} of {what} can be saved"
    if saved < settings.gain:
        return ScaleVerdict(applies=False, why=f"only {text}")
    if now.unchanged_s < settings.hold_s:
        wait_s = settings.hold_s - now.unchanged_s
        return ScaleVerdict(applies=False, why=f"{text}, in {wait_s:.0f} s at the earliest")
    return ScaleVerdict(applies=True, why=text)


def _saved(now: ScaleNow, plan: ScalePlan) -> tuple[float, str]:
    """The share that a plan saves, of brokers if it needs fewer, else of the traffic."""
    if plan.brokers < now.brokers:
        return 1.0 - plan.brokers / now.brokers, f"{now.brokers} brokers"
    if now.input_per_s <= 0.0:
        return 0.0, "the traffic"
    return max(0.0, 1.0 - plan.input_per_s / now.input_per_s), "the traffic"
