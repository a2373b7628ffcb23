"""`godwit whatif` and --require-gain on broker processes under load.

What is compared does not depend on the speed of the machine: messages, deliveries, hops, bytes.
Delays and the time that matching takes are compared by `python -m benchmarks.whatif`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import msgspec
import pytest
from tests.asynchronous import run
from tests.live.changing import ChangingNetwork, changing
from typer.testing import CliRunner, Result

from godwit.cli import app
from godwit.client import Client, connect
from godwit.overlay.topology import Topology, chain, star
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.rehearsal import taking_snapshots
from godwit.rehearsal.network_snapshot import NetworkSnapshot, decode_snapshot
from godwit.runtime.processes import Processes
from godwit.runtime.settings import Limits, NetworkSettings, dump_network, network_of
from godwit.testing.witness import WitnessedClient

BROKERS = ("B1", "B2", "B3", "B4")
TEST_S = 180.0
PER_S = 40.0
WITHIN = 0.10
#: Figures that a slow machine does not change.
COMPARED = (
    "messages_per_s", "deliveries_per_s", "hops", "output_bytes_per_s", "output_utilisation",
)  # fmt: skip


def settings(network: NetworkSettings) -> NetworkSettings:
    brokers = [
        msgspec.structs.replace(each, output_bandwidth_bytes_s=100_000.0) for each in network.broker
    ]
    limits = Limits(link_s=60.0, restart_s=5.0, load_window_s=2.0)
    return msgspec.structs.replace(
        network, broker=brokers, limits=limits, profiling=ProfilingSettings()
    )


async def publish(client: WitnessedClient | Client) -> None:
    """At equal intervals, every value equally often: one second is like the next."""
    loop = asyncio.get_running_loop()
    begin_s = loop.time()
    for number in count():
        await asyncio.sleep(max(0.0, begin_s + number / PER_S - loop.time()))
        n = 37 * number % 100
        await client.publish({"class": client.name, "n": n, "third": n % 3})


@contextlib.asynccontextmanager
async def publishing(network: ChangingNetwork) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(publish(each)) for each in network.publishers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await network.check()


async def godwit(*words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, list(words))


async def cast(network: ChangingNetwork) -> None:
    for broker in ("B1", "B4"):
        await network.publisher(broker)
    for broker in BROKERS:
        await network.subscribers(3, broker)


def test_the_unchanged_network_is_predicted_and_its_snapshot_can_be_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "snapshot.json"
    monkeypatch.setattr(taking_snapshots, "LISTED_MAX", 2)  # Tables have several pages.

    async def scenario() -> None:
        async with changing(tmp_path, chain(4), change_settings=settings) as network:
            await cast(network)
            async with publishing(network):
                url = network.coordinator.url
                options = ("--sample-s", "6", "--windows", "3", "--save", str(file), "--json")
                result = await godwit("whatif", url, *options)
            assert result.exit_code == 0, result.output
            report = json.loads(result.stdout)
            assert report["is_independent"]
            for name in COMPARED:
                error = report["error"][name]
                assert abs(error) <= WITHIN, (name, error, report["measured"], report["before"])

    run(scenario(), within_s=TEST_S)
    taken: NetworkSnapshot = decode_snapshot(file.read_bytes())
    assert taken.broker_names == list(BROKERS)
    assert taken.topology == chain(4)
    assert {each.name for each in taken.clients if each.advertisements} == {"pB1", "pB4"}
    assert sum(bool(each.subscriptions) for each in taken.clients) == 12
    assert taken.profiles is not None
    assert len(taken.profiles.publishers) == 2
    again = CliRunner().invoke(
        app, ["whatif", "--snapshot", str(file), "-c", "without=B2", "--json"]
    )
    (outcome,) = json.loads(again.stdout)["outcomes"]
    assert outcome["gain"] > 0.1
    assert outcome["moves"] == 3


@pytest.mark.parametrize("overlay", ["mesh", "clusters"])
def test_other_overlays_are_predicted_from_their_network_file(tmp_path: Path, overlay: str) -> None:
    file = tmp_path / "net.toml"

    async def scenario() -> None:
        network = settings(network_of(chain(4), http_port=0))
        brokers = [
            msgspec.structs.replace(each, links=[] if overlay == "clusters" else each.links)
            for each in network.broker
        ]
        network = msgspec.structs.replace(
            network,
            broker=brokers,
            overlay=overlay,
            clusters=2 if overlay == "clusters" else None,
            profiling=None,
        )
        async with Processes(network) as running, contextlib.AsyncExitStack() as stack:
            addressed = [
                msgspec.structs.replace(each, http=running.http(each.id).removeprefix("http://"))
                for each in running.network.broker
            ]
            file.write_text(
                dump_network(msgspec.structs.replace(running.network, broker=addressed))
            )
            paul = await stack.enter_async_context(connect(running.url("B1"), name="paul"))
            await paul.advertise("class = 'paul' and n is a number and third is a number")
            for number, broker in enumerate(BROKERS * 2):
                url = running.url(broker)
                reader = await stack.enter_async_context(connect(url, name=f"s{number}"))
                events = await stack.enter_async_context(reader.subscribe(f"n < {20 * number}"))
                await events.in_effect()
            publishing = asyncio.create_task(publish(paul))
            try:
                options = ("--sample-s", "6", "--windows", "2", "--json")
                result = await godwit("whatif", str(file), *options)
            finally:
                publishing.cancel()
        assert result.exit_code == 0, (result.output, result.exception)
        report = json.loads(result.stdout)
        for name in COMPARED:
            error = report["error"][name]
            assert abs(error) <= WITHIN, (name, error, report["measured"], report["before"])

    run(scenario(), within_s=TEST_S)


def test_a_tree_is_applied_only_if_its_rehearsal_gains_enough(tmp_path: Path) -> None:
    def written(shape: Topology, name: str) -> str:
        path = tmp_path / name
        path.write_text(dump_network(network_of(shape)))
        return str(path)

    async def scenario() -> None:
        async with changing(tmp_path, chain(4), change_settings=settings) as network:
            await cast(network)
            better, same = written(star(3), "star.toml"), written(chain(4), "chain.toml")

            async def applied(file: str, gain: str) -> Result:
                options = ("--at", network.coordinator.url, "--require-gain", gain)
                return await godwit("network", "apply", file, *options, "--gain-of", "hops")

            async with publishing(network):
                refused = await applied(same, "10%")
                assert refused.exit_code == 1, refused.output
                assert "10% are required" in refused.output
                assert (await network.changes()).changes == []
                done = await applied(better, "10%")
                assert done.exit_code == 0, done.output
                assert "rehearsed:" in done.output
                assert len((await network.changes()).changes) == 1
            account = await network.account("B1")
            assert sorted(link.neighbour for link in account.links) == ["B2", "B3", "B4"]

    run(scenario(), within_s=TEST_S)
