"""A run of the scenario: subscribers and responders act, the coordinator's view is recorded."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from godwit.api import coordinator_api
from godwit.api import datacluster_api as api
from godwit.client import Client, connect
from godwit.demos.emergencies.emergency_processes import EmergencyProcesses
from godwit.demos.emergencies.live_subscribers import (
    LiveSubscriber,
    SubscriptionLog,
    all_deliveries,
)
from godwit.demos.emergencies.pacing import Pacing
from godwit.demos.emergencies.scenario import EmergencyScenario, Town
from godwit.errors import GodwitError
from godwit.http.operations import Nothing
from godwit.workloads.emergencies import PUBLISHERS, Published, emergency_reports, user_locations
from godwit.workloads.emergency_channels import EMERGENCY

#: Enough for channels to read all that was published, and for the results to be delivered.
SETTLE_S = 240.0
#: Enough for the results of an execution to be pulled and delivered.
DELIVERED_S = 3.0
#: More than a run has: a plan moves each subscriber once, and a run has few plans.
MOVES_SEEN = 10_000
ADVERTISED = (
    f"class = '{EMERGENCY}' and report_id is a string and etype is a string and severity is a"
    " number and latitude is a number and longitude is a number and message is a string and"
    " at is a number"
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The coordinator's view at one time."""

    at_s: float
    cov: float
    mean_load: float
    maximum_load: float
    fe: int
    be: int
    brokers: Sequence[coordinator_api.BrokerStatus] = ()


@dataclass(slots=True)
class LiveRun:
    scenario: EmergencyScenario
    folder: Path
    logs: list[SubscriptionLog] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    reports: int = 0
    locations: int = 0
    moves: dict[str, int] = field(default_factory=dict)
    """Numbers of moves by outcome."""

    started_s: float = 0.0
    """Seconds since 1970; the times of samples are relative to it."""

    last_moves: list[coordinator_api.MoveRecord] = field(default_factory=list)
    """Moves, the latest first."""

    plans: int = 0
    brokers: list[coordinator_api.BrokerStatus] = field(default_factory=list)
    datasets: list[api.DatasetView] = field(default_factory=list)
    channels: list[api.ChannelView] = field(default_factory=list)

    @property
    def deliveries(self) -> int:
        return sum(len(log.events) for log in self.logs)


async def run_scenario(
    scenario: EmergencyScenario,
    town: Town,
    processes: EmergencyProcesses,
    watch: Callable[[float, LiveRun], None] = lambda _at_s, _run: None,
) -> LiveRun:
    """`watch` is called about once a second with the state so far."""
    run = LiveRun(scenario, processes.folder)
    subscribers = {
        subscriber.user: LiveSubscriber(subscriber, scenario, processes.coordinator_url)
        for subscriber in town.subscribers
    }
    pacing, is_over = Pacing(scenario.subscribed_s, waits_for=len(subscribers)), asyncio.Event()
    run.started_s = time.time()
    async with asyncio.TaskGroup() as acting:
        for subscriber in subscribers.values():
            acting.create_task(subscriber.run(pacing, is_over))
        watching = acting.create_task(_watch(processes, subscribers, run, pacing, watch))
        walking = acting.create_task(_walk(scenario, town, subscribers, run, pacing))
        await _report(scenario, town, processes, run, pacing)
        await walking
        await _settle(processes, subscribers)
        watching.cancel()
        await _look_back(processes, run)
        is_over.set()
    run.logs = all_deliveries(list(subscribers.values()))
    return run


async def _walk(
    scenario: EmergencyScenario,
    town: Town,
    subscribers: dict[str, LiveSubscriber],
    run: LiveRun,
    pacing: Pacing,
) -> None:
    """Subscribers publish their location once a second."""
    steps = user_locations(
        town.random, town.roads, scenario.users, until_s=scenario.duration_s, start_s=time.time()
    )
    for step in steps:
        await pacing.until(step.at_s)
        await subscribers[step.publisher].publish_location(step.record)
        run.locations += 1


async def _report(
    scenario: EmergencyScenario,
    town: Town,
    processes: EmergencyProcesses,
    run: LiveRun,
    pacing: Pacing,
) -> None:
    """Responders report emergencies; they are spread over the brokers."""
    reports = emergency_reports(
        town.random,
        town.roads,
        until_s=scenario.duration_s,
        start_s=time.time(),
        per_s=scenario.reports_per_s,
    )
    async with contextlib.AsyncExitStack() as stack:
        responders: dict[str, Client] = {}
        for number in range(1, PUBLISHERS + 1):
            url = processes.brokers.url(f"B{number % scenario.brokers + 1}")
            name = f"responder-{number}"
            responders[name] = await stack.enter_async_context(connect(url, name=name))
            await responders[name].advertise(ADVERTISED)
        for step in reports:
            await pacing.until(step.at_s)
            await _publish(responders, step)
            run.reports += 1


async def _publish(responders: dict[str, Client], step: Published) -> None:
    await responders[step.publisher].publish(step.record)


async def _watch(
    processes: EmergencyProcesses,
    subscribers: dict[str, LiveSubscriber],
    run: LiveRun,
    pacing: Pacing,
    watch: Callable[[float, LiveRun], None],
) -> None:
    while True:
        await asyncio.sleep(1.0)
        at_s = pacing.now_s
        with contextlib.suppress(GodwitError):  # The next call may succeed.
            seen = await processes.coordinator.call(coordinator_api.BROKERS, Nothing())
            balance = seen.balance
            run.samples.append(
                Sample(
                    at_s,
                    balance.cov,
                    balance.mean_load,
                    balance.maximum_load,
                    balance.fe_subscriptions,
                    balance.be_subscriptions,
                    seen.brokers,
                )
            )
            moves = await processes.coordinator.call(
                coordinator_api.MOVES, coordinator_api.WhichMoves(limit=1)
            )
            run.moves = moves.outcomes
        run.logs = all_deliveries(list(subscribers.values()))
        watch(at_s, run)


async def _settle(processes: EmergencyProcesses, subscribers: dict[str, LiveSubscriber]) -> None:
    """Wait until every channel has read all records and every result is delivered."""
    deadline_s = time.monotonic() + SETTLE_S
    before = -1
    while time.monotonic() < deadline_s:
        datasets = (await processes.cluster.call(api.DATASETS, Nothing())).datasets
        channels = await _channels(processes)
        waits = any(dataset.waiting_bytes for dataset in datasets)
        waits |= any(channel.unread_batches for channel in channels)
        deliveries = sum(len(log.events) for log in all_deliveries(list(subscribers.values())))
        if not waits and deliveries == before:
            return
        before = deliveries
        await asyncio.sleep(DELIVERED_S)


async def _channels(processes: EmergencyProcesses) -> Sequence[api.ChannelView]:
    return (await processes.cluster.call(api.CHANNELS, Nothing())).channels


async def _look_back(processes: EmergencyProcesses, run: LiveRun) -> None:
    moves = await processes.coordinator.call(
        coordinator_api.MOVES, coordinator_api.WhichMoves(limit=MOVES_SEEN)
    )
    run.moves, run.last_moves = moves.outcomes, moves.moves
    plan = (await processes.coordinator.call(coordinator_api.PLAN, Nothing())).plan
    run.plans = 0 if plan is None else plan.number
    run.brokers = (await processes.coordinator.call(coordinator_api.BROKERS, Nothing())).brokers
    run.datasets = (await processes.cluster.call(api.DATASETS, Nothing())).datasets
    run.channels = list(await _channels(processes))
