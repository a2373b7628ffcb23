"""A coordinator process with broker processes: it balances them, and nobody misses anything."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.asynchronous import run
from tests.live.coordinating import CoordinatorProcess, registrations, reporting
from tests.live.watching import until

from godwit.api import coordinator_api
from godwit.client import Client, connect
from godwit.content.filters import Filter
from godwit.content.geography import GeoPoint
from godwit.errors import UnreachableError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes
from godwit.runtime.settings import network_of
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

THREE = chain(3)
HELSINKI, TURKU, TAMPERE = (60.17, 24.94), (60.45, 22.27), (61.50, 23.76)
LOCATIONS = {
    "B1": GeoPoint(*HELSINKI),
    "B2": GeoPoint(*TURKU),
    "B3": GeoPoint(*TAMPERE),
}
SUBSCRIBERS = 12
#: One BE subscription for each pair of subscribers, and one of their own.
RATES = {be: 100.0 + be for be in range(6)} | {100 + n: 50.0 for n in range(SUBSCRIBERS)}
OPTIONS = (
    "--placement", "nearest", "--report-s", "2", "--hold-s", "1", "--moves-per-s", "10",
    "--alpha", "0.2",
)  # fmt: skip


def holds(client: Client) -> list[int]:
    number = int(client.name[1:])
    return [number // 2, 100 + number]


def test_brokers_are_balanced_and_nobody_misses_anything(tmp_path: Path) -> None:
    run(_balanced(tmp_path), within_s=100)


async def _balanced(folder: Path) -> None:
    oracle = Oracle(settle_s=10.0)
    async with contextlib.AsyncExitStack() as stack:
        running = await stack.enter_async_context(Processes(network_of(THREE, http_port=0)))
        coordinator = await stack.enter_async_context(CoordinatorProcess(folder, *OPTIONS))
        caller = await stack.enter_async_context(HttpClient(coordinator.url))
        brokers = registrations(running, LOCATIONS)
        for broker in brokers:
            await caller.call(coordinator_api.REGISTER_BROKER, broker)

        async def enter(client: Client) -> WitnessedClient:
            return await stack.enter_async_context(WitnessedClient(client, oracle))

        publisher = await enter(connect(running.url("B2"), name="paul"))
        await publisher.advertise(Filter.parse("class = 'TICK' and n is present"))
        guided = f"bcs+{coordinator.url}"
        subscribers = [
            await enter(connect(guided, name=f"s{number}", location=(60.2, 24.7)))
            for number in range(SUBSCRIBERS)
        ]
        for number, each in enumerate(subscribers):
            await each.subscribe(Filter.parse(f"class = 'TICK' and n >= {number}"))
        clients = [each.client for each in subscribers]
        assert {client.session.broker for client in clients} == {"B1"}, "all live in Espoo"

        talking = asyncio.create_task(_talk(publisher))
        async with reporting(caller, brokers, clients, holds, RATES):
            await until(_some_moved(caller))
            assert await coordinator.end(signal.SIGKILL) == -signal.SIGKILL
            await coordinator.start()
            await until(_is_balanced(caller), within_s=40)
            moves = await caller.call(coordinator_api.MOVES, coordinator_api.WhichMoves())
            shown = await caller.call(coordinator_api.BROKERS, Nothing())
        # A machine that balances at once or publishes slowly needs a little longer.
        await until(lambda: _is(oracle.publications > 100), within_s=40)
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        await wait_for_deliveries(oracle, publisher.client, *clients, within_s=60.0)
        oracle.finish(time.time())
    assert oracle.is_satisfied, oracle.violations[:5]
    assert oracle.deliveries > oracle.publications > 100
    homes = Counter(client.session.broker for client in clients)
    assert set(homes) == {"B1", "B2", "B3"}
    assert homes == {broker.broker: broker.subscribers for broker in shown.brokers}
    assert shown.balance.cov <= 0.2
    assert moves.outcomes["moved"] >= homes["B2"] + homes["B3"] - moves.outcomes.get("unknown", 0)
    assert all(move.why for move in moves.moves)
    assert not any(client.restarts for client in clients)


def _some_moved(caller: HttpClient) -> Callable[[], asyncio.Future[bool]]:
    async def look() -> bool:
        moves = await caller.call(coordinator_api.MOVES, coordinator_api.WhichMoves())
        return moves.outcomes.get("moved", 0) >= 1

    return lambda: asyncio.ensure_future(look())


def _is_balanced(caller: HttpClient) -> Callable[[], asyncio.Future[bool]]:
    async def look() -> bool:
        plan = await caller.call(coordinator_api.PLAN, Nothing())
        balance = (await caller.call(coordinator_api.BROKERS, Nothing())).balance
        is_idle = plan.plan is None or plan.plan.ended_s is not None
        return is_idle and balance.subscribers == SUBSCRIBERS and balance.cov <= 0.2

    return lambda: asyncio.ensure_future(look())


async def _talk(publisher: WitnessedClient) -> None:
    number = 0
    while True:
        await publisher.publish({"class": "TICK", "n": number % 20})
        number += 1
        await asyncio.sleep(0.005)


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    run(_killed(tmp_path), within_s=60)


async def _killed(folder: Path) -> None:
    async with CoordinatorProcess(folder) as coordinator, HttpClient(coordinator.url) as caller:
        for number in range(1, 4):
            url = f"godwit://127.0.0.1:{number}"
            await caller.call(
                coordinator_api.REGISTER_BROKER, coordinator_api.RegisterBroker(f"B{number}", url)
            )
        answered: list[str] = []

        async def ask(name: str) -> None:
            await caller.call(coordinator_api.REGISTER_USER, coordinator_api.RegisterUser(name))
            assigned = await caller.call(
                coordinator_api.REQUEST_BROKER, coordinator_api.RequestBroker(name)
            )
            answered.append(assigned.broker)

        async def ask_on() -> None:
            with contextlib.suppress(UnreachableError):
                for number in range(100_000):
                    await ask(f"u{number}")

        for kill in range(3):
            asking = asyncio.create_task(ask_on())
            await until(lambda kill=kill: _is(len(answered) > 20 * (kill + 1)))  # type: ignore[misc]
            await coordinator.end(signal.SIGKILL)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await coordinator.start()
            shown = await caller.call(coordinator_api.BROKERS, Nothing())
            assert [(b.broker, b.is_live) for b in shown.brokers] == [
                ("B1", True), ("B2", True), ("B3", True),
            ]  # fmt: skip
            for name in ("u0", "u10"):  # Known, or it would be 404.
                await caller.call(
                    coordinator_api.REQUEST_BROKER, coordinator_api.RequestBroker(name)
                )
        counts = Counter(answered)
        assert max(counts.values()) - min(counts.values()) <= 10, "they go on taking turns"


async def _is(holds: bool) -> bool:
    return holds


def test_clients_do_not_depend_on_it(tmp_path: Path) -> None:
    run(_without(tmp_path), within_s=60)


async def _without(folder: Path) -> None:
    async with Processes(network_of(chain(2), http_port=0)) as running:
        coordinator = CoordinatorProcess(folder)
        await coordinator.start()
        guided = f"bcs+{coordinator.url}"
        with pytest.raises(
            UnreachableError, match=r"the coordinator answered: .* there is no live broker"
        ):
            async with connect(guided, connect_s=0.5):
                pass
        async with HttpClient(coordinator.url) as caller:
            for broker in registrations(running, {}):
                await caller.call(coordinator_api.REGISTER_BROKER, broker)
        async with connect(guided, name="ann", fall_back_s=0.2) as ann:
            home = ann.session.broker
            await coordinator.end(signal.SIGKILL)
            with pytest.raises(UnreachableError, match="the coordinator does not answer"):
                async with connect(guided, connect_s=0.5):
                    pass
            await running.kill(home)
            await running.start(home)
            await until(lambda: _is(ann.restarts == 1))
            assert ann.session.broker == home, "it went back to its last broker"
            # Now the broker is gone for good, and the coordinator knows another one.
            await coordinator.start()
            other = ({"B1", "B2"} - {home}).pop()
            async with HttpClient(coordinator.url) as caller:
                at = next(b for b in registrations(running, {}) if b.broker == home)
                elsewhere = msgspec.structs.replace(at, url="godwit://127.0.0.1:1")
                await caller.call(coordinator_api.REGISTER_BROKER, elsewhere)
            await running.kill(home)
            await until(lambda: _is(ann.session.broker == other))
        await coordinator.end(signal.SIGTERM)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_it_is_told_to(tmp_path: Path, by: signal.Signals) -> None:
    async def scenario() -> None:
        coordinator = CoordinatorProcess(tmp_path)
        await coordinator.start()
        assert await coordinator.end(by) == 0

    run(scenario(), within_s=30)


async def _godwit(*arguments: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "godwit", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()


def test_an_operator_looks_at_it(tmp_path: Path) -> None:
    run(_looked_at(tmp_path), within_s=60)


async def _looked_at(folder: Path) -> None:
    options = ("--dry-run",)
    async with CoordinatorProcess(folder, *options) as coordinator:
        async with HttpClient(coordinator.url) as caller:
            for number, names in ((1, ["ann", "bob"]), (2, [])):
                url = f"godwit://127.0.0.1:{number}"
                await caller.call(
                    coordinator_api.REGISTER_BROKER,
                    coordinator_api.RegisterBroker(f"B{number}", url),
                )
                held = {name: [7] for name in names}
                report = coordinator_api.LoadReport(f"B{number}", 10.0, 20.0, {7: 500.0}, held)
                await caller.call(coordinator_api.LOAD_REPORT, report)

            async def has_plan() -> bool:
                return (await caller.call(coordinator_api.PLAN, Nothing())).plan is not None

            await until(has_plan)
        code, text, _ = await _godwit("brokers", coordinator.url, "--json")
        shown = msgspec.json.decode(text)
        assert (code, shown["balance"]["maximum_load"]) == (0, 1500.0)
        assert shown["plan"]["plan"]["is_dry_run"] is True
        assert [move["outcome"] for move in shown["moves"]] == ["proposed"]
        code, text, _ = await _godwit("brokers", coordinator.url)
        assert code == 0
        for words in ("B1", "godwit://127.0.0.1:2", "1 proposed", "a dry run", "last look"):
            assert words in text
        url = coordinator.url
    code, _, errors = await _godwit("brokers", url)
    assert (code, errors.startswith(f"godwit: GET {url}/brokers: ")) == (2, True), errors
    code, _, errors = await _godwit("coordinator", "--state", str(folder), "--strategy", "best")
    assert (code, errors.count("\n"), "strategy" in errors) == (2, 1, True), errors
