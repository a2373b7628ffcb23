"""A random simulated run in which brokers of clusters change their routes, for each seed.

In every third run they balance their load, which is too much for most of them; in the others they
change routes at random, without any sense.  What counts is that nothing is lost, comes twice or out
of order while routes change.  Every other run has clients that move.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from godwit.broker.modules import BrokerView, PolicyModule, Request, Timer
from godwit.broker.routing import (
    ResumeSubscriptions,
    RouteCluster,
    RouteRing,
    StopSubscriptions,
)
from godwit.overlay import Overlay
from godwit.overlay.clusters.steered_routing import SteeredRouting
from godwit.policies.cluster_balancing.cluster_balancer import ClusterBalancer
from godwit.policies.cluster_balancing.settings import ClusterBalancingSettings
from godwit.testing.random_moves import random_moves
from godwit.testing.random_runs import RandomRun, random_run

#: Clients of random runs have these names.
PUBLISHERS = tuple(f"c{number}" for number in range(12))
#: Steps of each broker, and the mean time between them.
STEPS = 60
STEP_S = 0.4
#: Brokers that balance their load do so until then; clients publish no longer.
ENDS_S = 60.0


class RandomSteering(PolicyModule):
    name = "random-steering"
    is_watching = False

    def __init__(self, random: Random) -> None:
        self._random = random
        self._steps = STEPS

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self._view = view
        return [self._next(now_s)]

    def _next(self, now_s: float) -> Timer:
        return Timer("step", now_s + self._random.expovariate(1.0 / STEP_S))

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        self._steps -= 1
        steering = self._view.steering
        assert steering is not None
        asked = self._requests(steering.mates, steering.other_clusters)
        return [*asked, self._next(now_s)] if self._steps else [*asked, ResumeSubscriptions()]

    def _requests(self, mates: Sequence[str], clusters: Sequence[int]) -> list[Request]:
        random = self._random
        if not mates:
            return []
        # The first broker of a cluster may stop to take subscriptions, so it does not help.
        first = min(self._view.broker, *mates)
        to = random.choice((*(mate for mate in mates if mate != first), None))
        local = sorted(set(self._view.publishers()) & set(PUBLISHERS))
        match random.randrange(6):
            case 0 | 1 if clusters and local:
                some = tuple(random.sample(clusters, random.randint(1, len(clusters))))
                return [RouteRing(random.choice(local), some, to)]
            case 2 | 3:
                return [RouteCluster(random.choice(PUBLISHERS), to)]
            case 4 if to is not None and self._view.broker == first:
                return [StopSubscriptions(to)]
            case _:
                return [ResumeSubscriptions()]


class EndingBalancer(ClusterBalancer):
    """Balances until then: a run ends when nothing is left to do."""

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        return () if now_s > ENDS_S and name == "window" else super().on_timer(name, now_s)


def random_steering(seed: int, overlay: Overlay = SteeredRouting) -> RandomRun:
    """Build and run the scenario of `seed`, checking invariants after every step."""
    settings = ClusterBalancingSettings(
        threshold=10 ** Random(seed).uniform(0.0, 1.5),
        window_s=1.0,
        answer_s=0.5,
        stop_s_min=0.5,
        stop_s_max=5.0,
    )

    def modules(broker: str) -> list[PolicyModule]:
        random = Random(f"{seed} {broker}")
        return [RandomSteering(random) if seed % 3 else EndingBalancer(settings, random)]

    if seed % 2:
        run = random_moves(seed, overlay, modules=modules)
    else:
        run = random_run(seed, overlay, brokers_max=12, modules=modules)
    # A mate that passes a publication on to a ring may get it again in the cluster phase.
    return replace(run, repeated=0)
