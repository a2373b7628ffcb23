"""A broker that is missed by its address, and is there in another way: the gap is over."""

from __future__ import annotations

import asyncio

from tests.runtime.test_gaps import LIMITS, gap_of

from godwit.overlay.topology import topology
from godwit.testing.nemesis.memory_fleet import MemoryFleet, MemoryWire
from godwit.testing.virtual_time import run_in_virtual_time


def test_a_broker_that_was_missed_by_its_address_is_there_in_another_way() -> None:
    """X was told an address, at which there was no broker in time; it is linked by another one."""

    async def scenario() -> None:
        fleet = MemoryFleet(topology(("B2", "B3"), [("B2", "B3")]), LIMITS, seed=1)
        await fleet.prepare()
        await fleet.start("B3")
        wire = fleet.links["B2", "X"] = MemoryWire()
        wire.stall()
        await fleet.join("X", "B3", "B2")
        async with fleet.connect(fleet.url("B3"), name="paul") as paul:
            address = fleet.url("B2")
            await gap_of(paul, address)
            await gap_of(paul, "B2")
            await fleet.start("B2")
            await gap_of(paul, "B2", is_over=True)
            wire.flow()
            await gap_of(paul, address, is_over=True)
            assert not paul.gaps.open
        await fleet.stop()

    run_in_virtual_time(asyncio.wait_for(scenario(), 600.0))
