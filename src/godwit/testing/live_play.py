"""Plays a workload through live brokers, by the wall clock; simulation/playing.py simulates one.

    async with Processes(network_of(topology)) as running:
        await play(running.url, workload, joining, from_s=3.0, until_s=13.0, oracle=oracle)

Every client is a `WitnessedClient`: the oracle checks what they receive, and other observers can
watch.  There is one stream of publications, as in the simulator, so that the same seed publishes
the same records.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable

from godwit.client import connect
from godwit.simulation.observers import Observer, Observers
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries
from godwit.workloads.timelines import Join
from godwit.workloads.workload import Workload

#: After the last publication, so that everything under way can arrive.
QUIET_S = 5.0


async def play(
    url_of: Callable[[str], str],
    workload: Workload,
    joining: Iterable[Join],
    *,
    from_s: float,
    until_s: float,
    oracle: Oracle,
    watching: Iterable[Observer] = (),
) -> None:
    """Play from now on, then wait until no delivery is outstanding, for QUIET_S at most.

    Publishing begins when all subscribers have joined, even if that takes longer than `from_s`.
    The oracle's verdict is final when this returns.
    """
    observer = Observers((oracle, *watching))
    start_s = time.monotonic()
    async with contextlib.AsyncExitStack() as clients:

        async def enter(name: str, at: str) -> WitnessedClient:
            client = WitnessedClient(connect(url_of(at), name=name), observer)
            return await clients.enter_async_context(client)

        async def join(step: Join) -> None:
            await _sleep_until(start_s + step.at_s)
            subscriber = await enter(step.subscriber.name, step.subscriber.at)
            await subscriber.subscribe(step.subscriber.filter)

        publishers: dict[str, WitnessedClient] = {}
        async with asyncio.TaskGroup() as acting:
            for step in joining:
                acting.create_task(join(step))
            for publisher in workload.publishers:
                client = publishers[publisher.name] = await enter(publisher.name, publisher.at)
                await client.advertise(publisher.advertisement)
        for publishing in workload.publications(from_s=from_s, until_s=until_s):
            await _sleep_until(start_s + publishing.at_s)
            await publishers[publishing.publisher].publish(dict(publishing.record))
        await wait_for_deliveries(oracle, within_s=QUIET_S)
        oracle.finish(time.time())


async def _sleep_until(at_s: float) -> None:
    delay_s = at_s - time.monotonic()
    if delay_s > 0:
        await asyncio.sleep(delay_s)
