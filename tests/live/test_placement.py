"""Broker processes with a policy in their file: publishers end up where they should be."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from tests.asynchronous import run
from tests.live.tick_clients import TickPublisher, TickSubscriber, tick_publisher, tick_subscriber
from tests.live.watching import metric, until

from godwit.overlay.topology import topology
from godwit.policies.placement.settings import (
    GrapeSettings,
    Metric,
    PlacementSettings,
    PopSettings,
    policy_of,
)
from godwit.runtime.pings import GRACE_S, PING_S
from godwit.runtime.processes import Processes
from godwit.runtime.settings import NetworkSettings, TraceSettings, network_of

TEST_S = 60.0
#: B1 - B2 - B3 - B5, and B4 at B3.
FORK = topology(
    ["B1", "B2", "B3", "B4", "B5"], [("B1", "B2"), ("B2", "B3"), ("B3", "B4"), ("B3", "B5")]
)
POLICIES: dict[str, PlacementSettings] = {
    "pop": PopSettings(traces_per_decision=20, traces_per_window=1_000, hold_s=1.0),
    "grape, load": GrapeSettings(publications_per_session=20, hold_s=1.0),
    "grape, delay": GrapeSettings(
        publications_per_session=20, primary=Metric.DELAY, weight_percent=50.0, hold_s=1.0
    ),
}


def network(policy: PlacementSettings, trace: Path | None = None) -> NetworkSettings:
    return msgspec.structs.replace(
        network_of(FORK, http_port=0),
        placement=policy,
        trace=TraceSettings(folder=None if trace is None else str(trace)),
    )


@contextlib.asynccontextmanager
async def playing(running: Processes) -> AsyncIterator[tuple[TickPublisher, list[TickSubscriber]]]:
    """Paul speaks at B1; one listens at B4, and two do at B5."""
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        paul = await enter(tick_publisher(running.url("B1"), "paul"))
        places = {"alice": "B4", "bob": "B5", "carol": "B5"}
        subscribers = [
            await enter(tick_subscriber(running.url(at), name)) for name, at in places.items()
        ]
        yield paul, subscribers


@pytest.mark.parametrize("name", POLICIES)
def test_a_publisher_moves_to_where_its_subscribers_are(name: str, tmp_path: Path) -> None:
    """POP: two of three are at B5.  GRAPE: at B3, B4 and B5 the load is the same, and delay decides
    between these; that is as measured: B5, where most are, or one beside it."""
    home, decided = run(_moves(POLICIES[name], tmp_path), within_s=TEST_S)

    policy = policy_of(POLICIES[name])
    assert home in {"pop": {"B5"}, "grape, load": {"B3", "B4", "B5"}}.get(name, {"B3", "B5"})
    asked = [row for row in decided if (row["policy"], row["action"]) == (policy, "asked")]
    assert (asked[0]["subject"], asked[0]["source"]) == ("paul", "B1")
    assert asked[-1]["target"] == home
    assert [row["action"] for row in decided if row["source"] == "B1"][-2:] == ["asked", "left"]
    took_s = msgspec.json.decode(asked[0]["reason"])["selection_s"]
    assert 0 < took_s < PING_S + GRACE_S, "its pings were answered"


async def _moves(policy: PlacementSettings, folder: Path) -> tuple[str, list[dict[str, str]]]:
    async with Processes(network(policy, folder)) as running:
        async with playing(running) as (paul, subscribers):
            async with paul.publishing(burst=5):

                async def has_moved() -> bool:
                    return paul.client.session.broker != "B1"

                await until(has_moved)
                await asyncio.sleep(0.5)
            for subscriber in subscribers:
                await subscriber.has_received(paul)
                assert subscriber.has_received_all(paul)
            home = paul.client.session.broker
            name = policy_of(policy)
            labels = {"policy": name, "action": "asked"}
            assert await metric(running, "B1", "godwit_decisions_total", **labels) == 1
        codes = await running.stop()
    assert set(codes.values()) == {0}
    rows = pq.read_table(folder / "decisions").to_pylist()
    return home, sorted(rows, key=lambda row: row["time_s"])


def test_a_dry_run_proposes_and_moves_nobody() -> None:
    run(_dry_run(), within_s=TEST_S)


async def _dry_run() -> None:
    policy = PopSettings(traces_per_decision=20, traces_per_window=1_000, dry_run=True)
    async with Processes(network(policy)) as running, playing(running) as (paul, subscribers):

        async def have_proposed() -> bool:
            labels = {"policy": "pop", "action": "proposed"}
            return await metric(running, "B1", "godwit_decisions_total", **labels) >= 2

        async with paul.publishing(burst=5):
            await until(have_proposed)
        for subscriber in subscribers:
            await subscriber.has_received(paul)
            assert subscriber.has_received_all(paul)
        assert paul.client.session.broker == "B1"
        assert await metric(running, "B1", "godwit_decisions_total", action="asked") == 0


def test_after_a_move_a_publisher_is_left_alone() -> None:
    run(_hold(), within_s=TEST_S)


async def _hold() -> None:
    """Its subscribers have gone back to where it was; it stays, for the hold time at least."""
    policy = PopSettings(traces_per_decision=10, traces_per_window=1_000, hold_s=30.0)
    async with Processes(network(policy)) as running, playing(running) as (paul, _):
        async with paul.publishing(burst=5):

            async def has_moved() -> bool:
                return paul.client.session.broker == "B5"

            await until(has_moved)
        async with contextlib.AsyncExitStack() as stack:
            at_home = [
                await stack.enter_async_context(
                    tick_subscriber(running.url("B1"), f"dave-{number}")
                )
                for number in range(5)
            ]
            since = paul.published
            async with paul.publishing(burst=20):
                await asyncio.sleep(2.0)
            for subscriber in at_home:
                await subscriber.has_received(paul)
                assert subscriber.has_received_all(paul, since=since)
        assert paul.published - since > 200
        assert paul.client.session.broker == "B5"
        decided = await metric(running, "B5", "godwit_decisions_total")
        assert decided == 0
