"""Play a workload in a simulator: clients advertise, join, leave and publish at their times.

    workload = placement_workload(CLUSTER, StockMarket(random, symbols=30), brokers, random)
    joining = joins(workload.subscribers, random, within_s=60.0)
    play(simulator, workload, joining, from_s=60.0, until_s=1080.0)
    simulator.run(until_s=1090.0)

Publishers advertise at once.  Only the next step of the timeline and the next publication are on
the agenda: an hour of publications takes no more memory than a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from godwit.content.messages import AdvertisementId, SubscriptionId
from godwit.simulation.agenda import Action
from godwit.simulation.simulated_client import SimulatedClient
from godwit.simulation.simulator import Simulator
from godwit.workloads.timelines import Join, Leave, RateStep, Step
from godwit.workloads.workload import Publishing, Workload

Planned: TypeAlias = tuple[float, Action, Any]


def play(
    simulator: Simulator,
    workload: Workload,
    timeline: Iterable[Step],
    *,
    until_s: float,
    from_s: float = 0.0,
) -> None:
    """Plan everything; publications are made from `from_s` on and before `until_s`.

    The workload's subscribers take part if the timeline lets them join, and when it does.
    """
    steps = sorted(timeline, key=lambda step: step.at_s)
    rate_steps = [step for step in steps if isinstance(step, RateStep)]
    publications = workload.publications(until_s=until_s, from_s=from_s, steps=rate_steps)
    stage = _Stage(simulator, workload)
    _plan_next(simulator, stage.attendance(steps))
    _plan_next(simulator, stage.publishing(publications))


def _plan_next(simulator: Simulator, stream: Iterator[Planned]) -> None:
    """Put the next step on the agenda; when it is done, the one after it."""
    following = next(stream, None)
    if following is not None:
        at_s, action, argument = following
        simulator.at(at_s, _do, simulator, stream, action, argument)


def _do(simulator: Simulator, stream: Iterator[Planned], action: Action, argument: object) -> None:
    action(argument)
    _plan_next(simulator, stream)


class _Stage:
    """The clients of a workload, and what each of them holds."""

    def __init__(self, simulator: Simulator, workload: Workload) -> None:
        self._simulator = simulator
        self._publishers: dict[str, tuple[SimulatedClient, AdvertisementId]] = {}
        self._subscribers: dict[str, tuple[SimulatedClient, SubscriptionId]] = {}
        for publisher in workload.publishers:
            client = simulator.client(publisher.name, at=publisher.at)
            self._publishers[publisher.name] = client, client.advertise(publisher.advertisement)

    def attendance(self, steps: Iterable[Step]) -> Iterator[Planned]:
        for step in steps:
            if isinstance(step, Join):
                yield step.at_s, self._join, step
            elif isinstance(step, Leave):
                yield step.at_s, self._leave, step

    def publishing(self, publications: Iterable[Publishing]) -> Iterator[Planned]:
        return ((each.at_s, self._publish, each) for each in publications)

    def _join(self, step: Join) -> None:
        who = step.subscriber
        client = self._simulator.client(who.name, at=who.at)
        self._subscribers[who.name] = client, client.subscribe(who.filter)

    def _leave(self, step: Leave) -> None:
        client, subscription = self._subscribers.pop(step.subscriber)
        client.unsubscribe(subscription)
        client.leave()

    def _publish(self, publishing: Publishing) -> None:
        client, advertisement = self._publishers[publishing.publisher]
        client.publish(advertisement, dict(publishing.record))
