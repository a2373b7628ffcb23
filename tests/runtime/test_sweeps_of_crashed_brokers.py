"""Brokers on the way of a sweep crash: what it would overtake then is not lost.

S (paul) --- M --- N  alice moves here
             |
             O  alice was here; what M has for it waits
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from godwit.client import Client
from godwit.errors import StayedError
from godwit.migration.move import Phase
from godwit.overlay.topology import Topology
from godwit.runtime.settings import Limits
from godwit.testing.nemesis.memory_fleet import MemoryFleet
from godwit.testing.virtual_time import run_in_virtual_time

STAR = Topology(brokers=("M", "N", "O", "S"), links=frozenset({("M", "N"), ("M", "O"), ("M", "S")}))
LIMITS = Limits(link_s=60.0, restart_s=2.0, heartbeat_s=5.0)


@asynccontextmanager
async def fleet_of(topology: Topology) -> AsyncIterator[MemoryFleet]:
    fleet = MemoryFleet(topology, LIMITS, seed=1)
    await fleet.prepare()
    try:
        await asyncio.gather(*map(fleet.start, topology.brokers))
        yield fleet
    finally:
        await fleet.stop()


async def stays(client: Client, url: str) -> bool:
    try:
        await client.move(url, within_s=20.0)
    except StayedError:
        return True
    return False


@pytest.mark.parametrize("crashed", ["M", "MS", "SM"], ids="start {}".format)
def test_nothing_is_lost_that_a_sweep_would_overtake(crashed: str) -> None:
    """1 and 2 wait for O at M; 3 goes to N as well, and waits for the sweep in the client."""

    async def scenario() -> None:
        async with (
            fleet_of(STAR) as fleet,
            fleet.connect(fleet.url("S"), name="paul") as paul,
            fleet.connect(fleet.url("O"), name="bob") as bob,
            fleet.connect(fleet.url("O"), name="alice") as alice,
            alice.subscribe("x > 0") as events,
            bob.subscribe("x < 0") as others,
        ):
            await paul.advertise("x is a number")
            await events.in_effect()
            await others.in_effect()
            assert not await stays(bob, fleet.url("N")), "now every broker knows the way to O"

            fleet.links["M", "O"].stall()
            await paul.publish({"x": 1})
            await paul.publish({"x": 2})
            await asyncio.sleep(1.0)
            moving = asyncio.create_task(stays(alice, fleet.url("N")))
            await asyncio.sleep(1.0)
            assert alice.move_phase is Phase.SWEEPING
            await paul.publish({"x": 3})
            await asyncio.sleep(1.0)

            await fleet.kill(*crashed)
            fleet.links["M", "O"].flow()
            for broker in crashed:
                await fleet.start(broker)
            stayed = await moving
            await paul.publish({"x": 4})
            await paul.flush()
            await asyncio.sleep(1.0)
            assert [event.content["x"] for event in events.waiting] == [1, 2, 3, 4]
            assert stayed, "the way of the sweep has failed"
            assert not alice.gaps.seen

    run_in_virtual_time(scenario(), clocks=True)
