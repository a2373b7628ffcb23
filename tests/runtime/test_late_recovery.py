"""A broker stops to expect callers of an earlier run `link_s` after its start; what began later
has a time of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from godwit.broker.stimuli import BuildEpoch
from godwit.overlay.topology import chain
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.virtual_time import run_in_virtual_time

LINK_S, RESTART_S = 60.0, 5.0


def played(scene: Callable[[MemoryNetwork], Awaitable[None]], latency_s: float = 0.0) -> None:
    async def play() -> None:
        limits = Limits(link_s=LINK_S, restart_s=RESTART_S)
        async with MemoryNetwork(chain(2), limits=limits, latency_s=lambda: latency_s) as network:
            await scene(network)

    run_in_virtual_time(play(), clocks=True)


def test_a_recovery_that_begins_late_waits_for_clients_as_any_other() -> None:
    async def scene(network: MemoryNetwork) -> None:
        recovery = network.nodes["B2"].recovery
        await asyncio.sleep(LINK_S - 2.0)
        recovery.begin()
        await asyncio.sleep(RESTART_S - 0.5)
        assert recovery.held is not None
        await asyncio.sleep(1.0)
        assert recovery.held is None

    played(scene)


def test_links_of_an_epoch_that_is_being_built_are_not_given_up_because_the_broker_is_new() -> None:
    async def scene(network: MemoryNetwork) -> None:
        loop = asyncio.get_running_loop()
        shape = network.plan_shape(chain(2), "again", 1).shape
        await asyncio.sleep(LINK_S - loop.time() - 0.03)
        for broker in ("B1", "B2"):
            await network.ask_epoch(broker, BuildEpoch("again", shape))
        await asyncio.sleep(1.0)
        phases = {node.epochs.status.phase for node in network.nodes.values()}
        assert phases == {"built"}

    played(scene, latency_s=0.01)
