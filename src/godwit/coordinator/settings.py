"""Settings of the coordinator.  docs/coordinator.md explains each key.

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

from godwit.api import dashboard_api
from godwit.api.coordinator_api import LISTEN
from godwit.config import read
from godwit.coordinator.autoscale_rule import AutoscaleSettings
from godwit.coordinator.cluster_rule import ClusterTuningSettings
from godwit.errors import UsageError
from godwit.policies.staged.initial import Placement
from godwit.policies.staged.planning import BalancingThresholds, Shuffle, Strategy
from godwit.protocol.addresses import address

#: All cores of this machine, as Spark names them.
LOCAL = "local[*]"

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Ratio = Annotated[float, msgspec.Meta(ge=0)]


class CoordinatorSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    listen: str = LISTEN
    """HOST:PORT; port 0 is any free port."""

    dashboard: str = dashboard_api.LISTEN
    """HOST:PORT of the dashboard that `godwit coordinator` serves, or "off"."""

    state: str = "coordinator"
    """The folder of the persistent state; relative to the working directory."""

    secret: str = ""
    """The network's secret, for requests between the coordinator and brokers of other machines."""

    placement: Placement = Placement.ROUND_ROBIN
    """Stage 1, the broker for newcomers: nearest, round robin, random, least loaded."""

    strategy: Strategy = Strategy.SDM
    """Stage 2, the target of single subscribers: ldm (the least loaded broker), sdm (one that
    shares most with the subscriber)."""

    shuffle: Shuffle = Shuffle.GREEDY
    """Stage 3, how all subscribers are assigned anew: greedy, improved."""

    spark_from: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Stage 3 of this many subscribers or more runs as a Spark job; never if it is not set."""

    spark_master: str = LOCAL
    """Where that job runs: this machine, or spark://HOST:PORT."""

    alpha: Ratio = 0.15
    """Stage 2 starts above this cov of the loads ..."""

    beta: Ratio = 0.0
    """... and a mean load above this, in bytes per second."""

    gamma: Ratio = 0.5
    """Stage 3 starts above this cov, which is above alpha ..."""

    theta: Ratio | None = None
    """... and a mean load above this; beta unless it is set."""

    report_s: Seconds = 10.0
    """Report interval of brokers.  One that is silent for three times this long is not live."""

    hold_s: Seconds = 60.0
    """How long a subscriber that was asked to move is not asked again."""

    moves_per_s: Annotated[float, msgspec.Meta(gt=0, le=100_000)] = 10.0
    """The most subscribers that are asked to move per second."""

    move_timeout_s: Seconds = 10.0
    """A broker's time for each subscriber that it is asked to move; then the outcome is unknown."""

    plan_s: Seconds = 300.0
    """Moves not requested by then are dropped: a plan is only as good as its reports.  Also the
    limit of a Spark job."""

    dry_run: bool = False
    """Plan and show, but request no moves."""

    autoscale: AutoscaleSettings | None = None
    """Gather, plan and apply by itself: brokers start and stop with the load.  Off by default."""

    clusters: ClusterTuningSettings | None = None
    """For networks with `clusters = "auto"`: when their number changes; usually as it is there."""

    def __post_init__(self) -> None:
        address(self.listen)
        if self.dashboard != dashboard_api.OFF:
            address(self.dashboard)
        self.thresholds  # noqa: B018  It checks them.
        if self.spark_from is not None and self.shuffle is not Shuffle.GREEDY:
            raise UsageError(
                f'spark_from: on Spark the shuffle is greedy; set shuffle = "greedy", '
                f"not {self.shuffle.value!r}"
            )

    @property
    def thresholds(self) -> BalancingThresholds:
        return BalancingThresholds(
            alpha=self.alpha, beta=self.beta, gamma=self.gamma, theta=self.theta
        )

    @property
    def silence_s(self) -> float:
        return 3 * self.report_s


def load_settings(path: Path) -> CoordinatorSettings:
    return read(path, CoordinatorSettings)
