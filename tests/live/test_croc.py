"""CROC and broker processes: gather while clients publish, plan, and lose a broker."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.asynchronous import run
from tests.live.tick_clients import TICKS, TickPublisher
from tests.live.watching import metric, until

from godwit.client import Client, connect
from godwit.client.croc_client import gather
from godwit.errors import RefusedError
from godwit.overlay.topology import chain, topology
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.plan import AllocationPlan
from godwit.runtime.processes import Processes
from godwit.runtime.settings import Limits, NetworkSettings, dump_network, network_of

TEST_S = 120.0
#: B1 - B2 - B3 - B5, and B4 at B3.
FORK = topology(
    ["B1", "B2", "B3", "B4", "B5"], [("B1", "B2"), ("B2", "B3"), ("B3", "B4"), ("B3", "B5")]
)
LENGTH = 256


def network() -> NetworkSettings:
    return msgspec.structs.replace(
        network_of(FORK, http_port=0),
        profiling=ProfilingSettings(vector_length=LENGTH),
        limits=Limits(link_s=3.0),
    )


class Listener:
    """A client with two subscriptions that overlap, and what it has received."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.received: list[tuple[int, int]] = []
        """Sequence numbers, and numbers of ticks."""

    async def listen(self, ready: asyncio.Event) -> None:
        async with (
            self.client.subscribe("class = 'TICK' and n > 100") as large,
            self.client.subscribe("class = 'TICK'") as events,
        ):
            await large.in_effect()
            await events.in_effect()
            ready.set()
            async for event in events:
                self.received.append((event.sequence, int(event.content["n"])))

    def expected(self) -> set[frozenset[int]]:
        """The last LENGTH publications that each of the two subscriptions received."""
        last = self.received[-1][0]
        seen = [(sequence, n) for sequence, n in self.received if sequence > last - LENGTH]
        return {
            frozenset(sequence for sequence, _ in seen),
            frozenset(sequence for sequence, n in seen if n > 100),
        }


@contextlib.asynccontextmanager
async def playing(running: Processes) -> AsyncIterator[tuple[TickPublisher, list[Listener]]]:
    """Paul publishes at B1; listeners are at B4 and B5."""
    async with contextlib.AsyncExitStack() as stack:
        paul = await stack.enter_async_context(connect(running.url("B1"), name="paul"))
        await paul.advertise(TICKS)
        listeners, tasks = [], []
        for name, at in {"alice": "B4", "bob": "B5"}.items():
            client = await stack.enter_async_context(connect(running.url(at), name=name))
            listeners.append(Listener(client))
            ready = asyncio.Event()
            tasks.append(asyncio.create_task(listeners[-1].listen(ready)))
            await ready.wait()
        try:
            yield TickPublisher(paul), listeners
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def croc(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "godwit", "croc", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(croc, *arguments)


def write_file(running: Processes, folder: Path) -> str:
    """A network file with the addresses that the brokers have."""
    brokers = [
        msgspec.structs.replace(each, http=running.http(each.id).removeprefix("http://"))
        for each in running.network.broker
    ]
    file = folder / "network.toml"
    file.write_text(dump_network(msgspec.structs.replace(running.network, broker=brokers)))
    return str(file)


def ids_of(gathered: Gathered, client: str) -> set[frozenset[int]]:
    found = set()
    for each in gathered.subscriptions:
        if each.client == client:
            ((publisher, bits),) = each.bits.items()
            first = each.first_id[publisher]
            found.add(frozenset(first + n for n, bit in enumerate(bits) if bit == "1"))
    return found


def test_gather_while_clients_publish_then_plan(tmp_path: Path) -> None:
    run(_gather_and_plan(tmp_path), within_s=TEST_S)


async def _gather_and_plan(folder: Path) -> None:
    async with Processes(network()) as running, playing(running) as (paul, listeners):
        file, output = write_file(running, folder), folder / "profiles.json"
        async with paul.publishing(per_s=20.0, burst=10):
            busy, also = await asyncio.gather(
                ask("gather", file, "--output", str(output)),
                gather(running.http("B4"), silence_s=30.0),
            )
        assert (busy.returncode, busy.stderr.count("5 brokers, 1 publishers, 4 subscr")) == (0, 1)
        early = msgspec.json.decode(output.read_bytes(), type=Gathered)
        assert early.missing == also.missing == ()
        assert [each.broker for each in early.publishers] == ["B1"]
        assert early.publishers[0].client == "paul"

        await paul.publish(LENGTH + 200)
        await _all_received(paul, listeners)
        found = (await gather(running.http("B5"), silence_s=30.0)).gathered()
        for each in listeners:
            assert [n for _, n in each.received] == list(range(paul.published))
            assert ids_of(found, each.client.name) == each.expected()
        assert found.publishers[0].last_id == listeners[0].received[-1][0]
        assert {each.id: each.neighbours for each in found.brokers} == {
            name: tuple(sorted(FORK.neighbours(name))) for name in FORK.brokers
        }
        assert all(str(each.address).startswith("godwit://") for each in found.brokers)
        await _plan(output, file)
        assert await metric(running, "B4", "godwit_profiled_subscriptions") == 2
        assert await metric(running, "B4", "godwit_profile_vectors") == 2
        assert await metric(running, "B4", "godwit_gatherings") == 0


async def _all_received(paul: TickPublisher, listeners: list[Listener]) -> None:
    async def have_all() -> bool:
        return all(each.received[-1][1] == paul.published - 1 for each in listeners)

    await until(have_all, within_s=TEST_S)


async def _plan(output: Path, file: str) -> None:
    options = ("--algorithm", "bin-packing", "--json")
    of_file, live = await asyncio.gather(
        ask("plan", "--profiles", str(output), *options), ask("plan", file, *options)
    )
    for made in (of_file, live):
        assert (made.returncode, made.stderr) == (0, "")
        plan = msgspec.json.decode(made.stdout, type=AllocationPlan)
        assert len(plan.assignment) == 4
        assert len(plan.brokers) == 1
        assert len(plan.released) == 4


def test_a_broker_that_is_killed_is_named_and_nothing_is_planned_without_it(
    tmp_path: Path,
) -> None:
    run(_kill(tmp_path), within_s=TEST_S)


async def _kill(folder: Path) -> None:
    async with Processes(network()) as running, playing(running) as (paul, _listeners):
        await paul.publish(10)
        file, output = write_file(running, folder), folder / "profiles.json"
        await running.kill("B5")
        partly = await ask("gather", file, "--output", str(output), "--timeout", "1")
        assert partly.returncode == 1
        assert "no answer from: B5\n" in partly.stderr
        found = msgspec.json.decode(output.read_bytes(), type=Gathered)
        assert found.missing == ("B5",)
        assert {each.client for each in found.subscriptions} == {"alice"}

        plan = ("plan", "--profiles", str(output), "--algorithm", "bin-packing")
        refused = await ask(*plan)
        assert refused.returncode == 2
        assert "no answer from: B5; a plan would not know their clients" in refused.stderr
        assert (await ask(*plan, "--without-missing")).returncode == 0

        async def is_given_up() -> bool:
            answers = await gather(running.http("B1"), silence_s=1.0)
            assert answers.missing == ("B5",), "whether the link is given up or not"
            brokers = {each.id: each for each in answers.gathered().brokers}
            return "B5" not in brokers["B3"].neighbours

        await until(is_given_up, within_s=TEST_S)


def test_brokers_that_record_nothing_say_so() -> None:
    async def scenario() -> None:
        async with Processes(network_of(chain(1), http_port=0)) as running:
            with pytest.raises(RefusedError, match=r"B1 does not profile .* no \[profiling\]"):
                await gather(running.http("B1"))

    run(scenario(), within_s=TEST_S)
