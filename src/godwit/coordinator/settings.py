"""What can be set for the coordinator.  docs/coordinator.md explains each key.

listen = "127.0.0.1:7500"
state = "coordinator"
placement = "nearest"
strategy = "sdm"
alpha = 0.15
beta = 1e6
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from godwit.balance.initial import Placement
from godwit.balance.staged import Shuffle, Strategy, Thresholds
from godwit.config import read
from godwit.rest.bcs import LISTEN
from godwit.wire.addresses import address

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Ratio = Annotated[float, msgspec.Meta(ge=0)]


class CoordinatorSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    listen: str = LISTEN
    """HOST:PORT; port 0 is any free one."""

    state: str = "coordinator"
    """The folder that outlives the process; relative to where it is started."""

    secret: str = ""
    """Of the network.  Brokers on other machines show it to us, and we show it to them."""

    placement: Placement = Placement.ROUND_ROBIN
    """Stage 1, where newcomers go: nearest, round robin, random, least loaded."""

    strategy: Strategy = Strategy.SDM
    """Stage 2, where single subscribers go: ldm (the least loaded broker), sdm (one that shares
    most with the subscriber)."""

    shuffle: Shuffle = Shuffle.GREEDY
    """Stage 3, how all are assigned anew: greedy, improved."""

    alpha: Ratio = 0.15
    """Stage 2 is for a cov of the loads above this ..."""

    beta: Ratio = 0.0
    """... and a mean load above this, in bytes per second."""

    gamma: Ratio = 0.5
    """Stage 3 is for a cov above this, which is above alpha ..."""

    theta: Ratio | None = None
    """... and a mean load above this; beta unless it is set."""

    report_s: Seconds = 10.0
    """How often brokers report.  One that is silent for three times that is not there."""

    hold_s: Seconds = 60.0
    """A subscriber that was asked to move is left alone for so long."""

    moves_per_s: Annotated[float, msgspec.Meta(gt=0, le=100_000)] = 10.0
    """So many subscribers are asked to move at most."""

    move_timeout_s: Seconds = 10.0
    """What a broker has for each subscriber that it is asked to move; then nobody knows."""

    plan_s: Seconds = 300.0
    """What has not been asked by then is dropped: a plan is no better than its reports."""

    dry_run: bool = False
    """Plan and show, ask nobody to move."""

    def __post_init__(self) -> None:
        address(self.listen)
        self.thresholds  # noqa: B018  It checks them.

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(alpha=self.alpha, beta=self.beta, gamma=self.gamma, theta=self.theta)

    @property
    def silence_s(self) -> float:
        return 3 * self.report_s


def load_settings(path: Path) -> CoordinatorSettings:
    return read(path, CoordinatorSettings)
