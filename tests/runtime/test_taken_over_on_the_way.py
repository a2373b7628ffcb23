"""A name is taken over while its client moves, and the broker of the other one is killed.

    B1 (alice) --- B2 --- B3 alice moves here          paul publishes at B2
                   |
                   B4 another alice takes the name over; B4 is killed

However it ends, nobody loses anything without a word: the first alice is told that it has ended,
or it has all that was acknowledged, or it is told of a gap.
"""

from __future__ import annotations

import asyncio
import contextlib
from random import Random

import pytest
from tests.runtime.test_sweeps_of_crashed_brokers import fleet_of
from tests.sweeps import seeds

from godwit.client import Client, Events
from godwit.errors import GodwitError, StayedError, TakenOverError
from godwit.overlay.topology import Topology
from godwit.testing.virtual_time import run_in_virtual_time

STAR = Topology(
    brokers=("B1", "B2", "B3", "B4"),
    links=frozenset({("B1", "B2"), ("B2", "B3"), ("B2", "B4")}),
)
PUBLISHED = 60


async def publish(paul: Client) -> None:
    for number in range(PUBLISHED):
        await paul.publish({"x": number})
        await asyncio.sleep(0.05)
    await paul.flush()


async def move(alice: Client, url: str) -> None:
    with contextlib.suppress(StayedError, TakenOverError):
        await alice.move(url)


async def take_over(other: Client) -> None:
    with contextlib.suppress(GodwitError):
        await other.__aenter__()


def has_ended(client: Client) -> bool:
    try:
        client.check_open()
    except TakenOverError:
        return True
    return False


def numbers(events: Events) -> list[int]:
    return [int(event.content["x"]) for event in events.waiting]


@pytest.mark.parametrize("seed", range(seeds(8, whole=400)))
def test_the_first_client_is_told_or_has_lost_nothing(seed: int) -> None:
    random = Random(seed)

    async def scenario() -> None:
        async with fleet_of(STAR) as fleet, fleet.connect(fleet.url("B2"), name="paul") as paul:
            alice = fleet.connect(fleet.url("B1"), name="alice")
            other = fleet.connect(fleet.url("B4"), name="alice", take_over=True)
            await alice.__aenter__()
            events = await alice.subscribe("x >= 0").__aenter__()
            await paul.advertise("x is a number")
            await events.in_effect()

            fleet.links["B1", "B2"].delay_s = random.choice((0.0, 0.05))
            fleet.links["B2", "B4"].delay_s = random.choice((0.0, 0.02, 0.1))
            async with asyncio.TaskGroup() as acting:
                acting.create_task(publish(paul))
                await asyncio.sleep(0.2)
                acting.create_task(move(alice, fleet.url("B3")))
                await asyncio.sleep(random.uniform(0.0, 0.1))
                acting.create_task(take_over(other))
                await asyncio.sleep(random.uniform(0.0, 0.3))
                await fleet.kill("B4")
                other.abort()
                await asyncio.sleep(0.5)
                acting.create_task(fleet.start("B4"))
            await asyncio.sleep(30.0)

            told = [gap.reason.value for gap in alice.gaps.seen]
            heard = numbers(events)
            assert heard == sorted(set(heard))
            assert has_ended(alice) or told or heard == list(range(PUBLISHED)), (seed, heard)
            alice.abort()

    run_in_virtual_time(scenario(), clocks=True)
