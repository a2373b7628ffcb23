"""Broker processes that start late: nothing is in effect, and nothing acknowledged, before."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.asynchronous import run

import godwit
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import Limits, dump_network, network_of

NUMBERS = "x is a number"


@contextlib.asynccontextmanager
async def without(late: str) -> AsyncIterator[Processes]:
    """B1 - B2 - B3, of which one is not there."""
    network = msgspec.structs.replace(network_of(chain(3), http_port=0), limits=Limits(link_s=60.0))
    running = Processes(network)
    running._file.write_text(dump_network(running.network))
    running._listeners.pop(late).close()  # Its port does not answer.
    brokers = [broker.id for broker in running.network.broker if broker.id != late]
    starting = [asyncio.create_task(running.start(broker)) for broker in brokers]
    try:
        yield running
        await asyncio.gather(*starting)
    finally:
        await running.stop()
        await asyncio.gather(*starting, return_exceptions=True)


async def troubles(running: Processes, broker: str) -> list[str]:
    """What GET /healthz says."""

    def get() -> list[str]:
        try:
            shown = urllib.request.urlopen(  # noqa: S310  Ours.
                f"{running.http(broker)}/healthz", timeout=10
            )
        except urllib.error.HTTPError as error:
            shown = error
        with shown:
            found = json.load(shown)
            assert shown.status == (503 if found["troubles"] else 200)
        return [str(each) for each in found["troubles"]]

    while broker not in running._http:  # noqa: ASYNC110  It has just been started.
        await asyncio.sleep(0.05)
    return await asyncio.to_thread(get)


def test_a_broker_in_between_starts_late_and_all_records_arrive() -> None:
    async def scenario() -> None:
        async with without("B2") as running:
            assert any("B2 is missing" in each for each in await troubles(running, "B1"))
            assert any("B2" in each for each in await troubles(running, "B3"))
            async with (
                godwit.connect(running.url("B1"), name="paul") as paul,
                godwit.connect(running.url("B3"), name="alice") as alice,
                alice.subscribe(NUMBERS) as events,
            ):
                advertising = asyncio.create_task(paul.advertise(NUMBERS))
                subscribing = asyncio.create_task(events.in_effect())
                with pytest.raises(godwit.NotReadyError) as caught:
                    await paul.ready(timeout_s=2.0)
                assert caught.value.missing == ("B2",)
                assert not advertising.done()
                assert not subscribing.done()
                await running.start("B2")
                await paul.ready(timeout_s=10.0)
                await advertising
                await subscribing
                for x in range(100):
                    await paul.publish({"x": x})
                await paul.flush()
                received = [(await anext(events)).content["x"] for _ in range(100)]
                assert received == [*range(100)]
            assert [await troubles(running, broker) for broker in ("B1", "B2", "B3")] == [[]] * 3

    run(scenario(), within_s=60.0)


def test_a_broker_says_what_is_missing_behind_its_neighbour() -> None:
    async def scenario() -> None:
        async with (
            without("B3") as running,
            godwit.connect(running.url("B1"), name="paul") as paul,
        ):
            with pytest.raises(godwit.NotReadyError, match=r"B3 \(behind B2\)"):
                await paul.ready(timeout_s=2.0)
            assert await troubles(running, "B1") == ["B3 is missing, behind B2"]
            command = [
                "godwit", "pub", running.url("B1"), '{"x": 1}',
            ]  # fmt: skip
            publishing = await asyncio.create_subprocess_exec(
                sys.executable, "-m", *command, stderr=asyncio.subprocess.PIPE
            )
            assert publishing.stderr is not None
            said = (await publishing.stderr.readline()).decode()
            assert "waiting for the network to be complete: B3 (behind B2) is missing" in said
            await running.start("B3")
            assert await publishing.wait() == 0
            await paul.ready(timeout_s=10.0)

    run(scenario(), within_s=60.0)
