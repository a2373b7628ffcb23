"""Broker processes whose network changes its shape under load, over HTTP, with `kill -9`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random

import pytest
from msgspec.structs import replace
from tests.asynchronous import run
from tests.live.test_membership import publishing

import godwit
from godwit.api.epoch_api import READ_EPOCH
from godwit.content.filters import Filter
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.migration.reshaping import ReshapingRecord, ReshapingStage, shape_of
from godwit.overlay.topology import Topology, balanced_tree
from godwit.runtime.epoch_http import ask_over_http
from godwit.runtime.processes import Processes
from godwit.runtime.reshaping_run import carry_out
from godwit.runtime.settings import Limits, network_of
from godwit.simulation.oracle import Oracle
from godwit.testing.random_reshaping import shuffled_tree
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

TREE = balanced_tree(5, fanout=2)
LIMITS = Limits(restart_s=1.0)


class Changing:
    """Changes the shape of running processes, as a coordinator does."""

    def __init__(self, running: Processes, callers: dict[str, HttpClient]) -> None:
        self._running = running
        self._callers = callers
        self.epoch = 0
        self.stages: list[ReshapingStage] = []

    def record(self, target: Topology, number: int) -> ReshapingRecord:
        addresses = {broker: self._running.url(broker) for broker in TREE.brokers}
        shape = shape_of(target, number, addresses, follows=self.epoch)
        return ReshapingRecord(change=f"change-{number}", shape=shape)

    async def carry_out(self, record: ReshapingRecord) -> ReshapingRecord:
        ask = ask_over_http(self._callers, record.shape, fencing=1)
        over = await carry_out(record, ask, self._save)
        if over.stage is ReshapingStage.DONE:
            self.epoch = over.shape.epoch
        return over

    def _save(self, record: ReshapingRecord) -> None:
        self.stages.append(record.stage)

    async def until(self, stage: ReshapingStage) -> None:
        while stage not in self.stages:  # noqa: ASYNC110  It has no event.
            await asyncio.sleep(0.005)

    async def epochs(self) -> set[int]:
        """The epochs that the brokers say they use."""
        answers = [await each.call(READ_EPOCH, Nothing()) for each in self._callers.values()]
        assert {answer.phase for answer in answers} == {"steady"}
        return {answer.epoch for answer in answers}


@contextlib.asynccontextmanager
async def busy_network(oracle: Oracle) -> AsyncIterator[tuple[Processes, Changing]]:
    """Five brokers with a client each, all of which publish and subscribe."""
    network = replace(network_of(TREE, http_port=0), limits=LIMITS)
    async with contextlib.AsyncExitStack() as stack:
        running = await stack.enter_async_context(Processes(network))
        callers = {
            broker: await stack.enter_async_context(HttpClient(running.http(broker)))
            for broker in TREE.brokers
        }
        clients = []
        for broker in TREE.brokers:
            connected = godwit.connect(running.url(broker), name=f"at-{broker}")
            clients.append(await stack.enter_async_context(WitnessedClient(connected, oracle)))
        for client in clients:
            await client.subscribe(Filter.parse("size > 50"))
        async with publishing(clients, Random(1)):
            yield running, Changing(running, callers)
        await wait_for_deliveries(oracle, within_s=60.0)
    assert oracle.is_satisfied, [str(violation) for violation in oracle.violations]


def test_the_shape_changes_under_load() -> None:
    async def scenario() -> None:
        async with busy_network(Oracle()) as (running, changing):
            pids = {broker: running.pid(broker) for broker in TREE.brokers}
            for number in (1, 2):
                record = changing.record(shuffled_tree(TREE, Random(number)), number)
                over = await changing.carry_out(record)
                assert over.stage is ReshapingStage.DONE, over.reason
                assert await changing.epochs() == {number}
            assert pids == {broker: running.pid(broker) for broker in TREE.brokers}

    run(scenario(), within_s=120.0)


@pytest.mark.parametrize("stage", [ReshapingStage.BUILDING, ReshapingStage.COMMITTED])
def test_a_broker_is_killed_and_there_is_one_shape(stage: ReshapingStage) -> None:
    async def scenario() -> None:
        async with busy_network(Oracle()) as (running, changing):
            record = changing.record(shuffled_tree(TREE, Random(3)), 1)
            carrying = asyncio.create_task(changing.carry_out(record))
            if stage is ReshapingStage.COMMITTED:
                await changing.until(stage)
            victim = "B2"
            await running.kill(victim)
            await running.restart(victim)
            over = await carrying
            if stage is ReshapingStage.COMMITTED:
                assert over.stage is ReshapingStage.DONE
            expected = 1 if over.stage is ReshapingStage.DONE else 0
            assert await changing.epochs() == {expected}

    run(scenario(), within_s=120.0)
