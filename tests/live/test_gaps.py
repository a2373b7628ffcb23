"""Brokers that are processes are given up: clients know, on both sides, and when it is over."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from functools import partial

import msgspec
import pytest
from tests.live.test_failures import run
from tests.live.tick_clients import tick_publisher, tick_subscriber
from tests.live.watching import is_healthy, metric, until

from godwit.client import Client, Gap, GapReason
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import Limits, NetworkSettings, network_of

#: Short, so that a broker that is gone is given up soon.
LIMITS = Limits(link_s=1.0, heartbeat_s=0.2, restart_s=0.5)
#: Nothing is given up in these.
PATIENT = Limits(link_s=60.0)


def network(limits: Limits) -> NetworkSettings:
    return msgspec.structs.replace(network_of(chain(3), http_port=0), limits=limits)


async def gap_of(client: Client, broker: str, *, is_over: bool = False) -> Gap:
    async for gap in client.gaps:
        if gap.broker == broker and gap.is_over is is_over:
            return gap
    raise AssertionError("the client was closed")


def test_a_broker_is_killed_and_its_part_is_a_gap_until_it_is_back() -> None:
    run(_killed())


async def _killed() -> None:
    async with (
        Processes(network(LIMITS)) as running,
        tick_publisher(running.url("B1"), "paul") as paul,
        tick_subscriber(running.url("B3"), "alice") as alice,
    ):
        await paul.publish(10)
        await paul.client.flush()
        assert not paul.client.gaps.seen

        await running.kill("B3", signal.SIGKILL)
        await paul.publish(10)
        await paul.client.flush()
        (gap,) = paul.client.gaps.seen
        assert (gap.reason, gap.broker, gap.own_lost) == (GapReason.PART_LOST, "B3", 10)
        await paul.publish(5)
        await paul.client.flush()  # It succeeds, and the gap is known.
        assert paul.client.gaps.open == [gap]
        for broker in ("B1", "B2"):
            assert await metric(running, broker, "godwit_gaps_total") == 1
            assert await metric(running, broker, "godwit_missing_parts") == 1
            assert not await is_healthy(running, broker)

        line = await asyncio.to_thread(_godwit_pub, running.url("B1"))
        assert line.startswith("gap: broker B3 is lost since ")

        await running.start("B3")
        await gap_of(paul.client, "B3", is_over=True)
        await anext(aiter(alice.client.gaps))  # It was told, too.
        while alice.client.gaps.open:
            await alice.client.gaps.next()
        since = paul.published
        await paul.publish(10)
        await alice.has_received(paul)
        assert alice.has_received_all(paul, since=since)
        for broker in ("B1", "B2", "B3"):
            await until(partial(is_healthy, running, broker))
            assert await metric(running, broker, "godwit_missing_parts") == 0


def _godwit_pub(url: str) -> str:
    """The first line that `godwit pub` prints on standard error."""
    done = subprocess.run(  # noqa: S603  Ourselves.
        [sys.executable, "-m", "godwit", "pub", url, '{"class": "NEWS"}'],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stderr.splitlines()[0]


@pytest.mark.parametrize("by", [signal.SIGSTOP, signal.SIGTERM], ids=["sleeps", "says goodbye"])
def test_the_broker_between_is_gone_and_both_sides_know(by: signal.Signals) -> None:
    run(_in_the_middle(by))


async def _in_the_middle(by: signal.Signals) -> None:
    async with (
        Processes(network(LIMITS)) as running,
        tick_publisher(running.url("B1"), "paul") as paul,
        tick_subscriber(running.url("B3"), "alice") as alice,
    ):
        if by == signal.SIGSTOP:
            os.kill(running.pid("B2"), signal.SIGSTOP)
        else:
            await running.kill("B2", by)
        await gap_of(alice.client, "B2")
        await paul.publish(10)
        await paul.client.flush()
        assert [gap.broker for gap in paul.client.gaps.open] == ["B2"]

        if by == signal.SIGSTOP:
            os.kill(running.pid("B2"), signal.SIGCONT)
        else:
            await running.start("B2")
        await gap_of(paul.client, "B2", is_over=True)
        await gap_of(alice.client, "B2", is_over=True)
        since = paul.published
        await paul.publish(10)
        await alice.has_received(paul)
        assert alice.has_received_all(paul, since=since)


def test_a_crash_that_is_back_in_time_and_a_move_are_no_gaps() -> None:
    run(_back_in_time())


async def _back_in_time() -> None:
    async with (
        Processes(network(PATIENT)) as running,
        tick_publisher(running.url("B1"), "paul") as paul,
        tick_subscriber(running.url("B3"), "alice") as alice,
    ):
        async with paul.publishing():
            for broker in ("B2", "B3", "B1"):
                await running.kill(broker, signal.SIGKILL)
                await running.start(broker)
                for each in ("B1", "B2", "B3"):
                    await until(partial(is_healthy, running, each))
            await alice.client.move(running.url("B2"))
        await alice.has_received(paul)
        assert alice.has_received_all(paul)
        assert [*paul.client.gaps.seen, *alice.client.gaps.seen] == []
        for broker in ("B1", "B2", "B3"):
            assert await metric(running, broker, "godwit_gaps_total") == 0
