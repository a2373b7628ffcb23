"""The data cluster as a process: over HTTP, fed by a broker, killed, full, and told nonsense."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import msgspec
import pytest
from benchmarks.channel_kills import run
from rich.console import Console
from tests.cluster import standalone
from tests.sweeps import in_sweeps
from typer.testing import CliRunner

from godwit import EndedError, RefusedError
from godwit.api import broker_api
from godwit.api import datacluster_api as api
from godwit.cli import app
from godwit.client import connect
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes, free_port
from godwit.runtime.service import Service
from godwit.runtime.settings import network_of

READINGS = "CREATE DATASET Readings (sensor STRING, value DOUBLE, at TIMESTAMP) KEY sensor"
ABOVE = """CREATE CHANNEL Above(low DOUBLE) CONTINUOUS AS
SELECT sensor, value FROM NEW Readings WHERE value > :low"""
OF = """CREATE CHANNEL Of(name STRING) CONTINUOUS AS
SELECT sensor, value FROM NEW Readings WHERE sensor = :name"""
FAILING = """CREATE CHANNEL Failing(name STRING) CONTINUOUS AS
SELECT sensor, value FROM NEW Readings WHERE sensor = :name AND sensor > 3"""
"""Spark makes a number of each sensor, and that cannot be done with 'a'."""
ADVERTISED = "class = 'READING' and sensor is a string and value is a number"


@contextlib.asynccontextmanager
async def scene(
    folder: Path, *options: str
) -> AsyncIterator[tuple[Processes, Service, HttpClient]]:
    """A broker and a data cluster."""
    listen = f"127.0.0.1:{free_port()}"
    network = network_of(chain(1), http_port=0)
    network = msgspec.structs.replace(network, datacluster=f"http://{listen}")
    async with Processes(network) as brokers:
        arguments = ("--listen", listen, "--folder", str(folder / "data"), *options)
        service = Service("datacluster", *arguments, "--broker", brokers.url("B1"))
        async with service, HttpClient(service.url, answer_s=120.0, attempts=1) as caller:
            yield brokers, service, caller


def play(history: Callable[[], Awaitable[None]], within_s: float = 400) -> None:
    async def within_time() -> None:
        async with asyncio.timeout(within_s):
            await history()

    asyncio.run(within_time())


async def say(caller: HttpClient, *statements: str) -> None:
    for text in statements:
        await caller.call(api.STATEMENT, api.Statement(text))


async def post(caller: HttpClient, *records: object, **options: object) -> api.Taken:
    raw = [msgspec.Raw(msgspec.json.encode(record)) for record in records]
    return await caller.call(api.RECORDS, api.Records("Readings", raw, **options))  # type: ignore[arg-type]


async def rows(caller: HttpClient, dataset: str) -> int:
    found = (await caller.call(api.DATASETS, Nothing())).datasets
    return next(each.rows for each in found if each.name == dataset)


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    while not await done():  # noqa: ASYNC110
        await asyncio.sleep(0.2)


async def _from_post_and_publication_to_subscriber(
    brokers: Processes, _: Service, caller: HttpClient
) -> None:
    feed = f'CREATE FEED readings FROM FILTER "{ADVERTISED}" INTO Readings'
    await say(caller, READINGS, OF, feed)
    async with (
        connect(brokers.url("B1")) as client,
        connect(brokers.url("B1")) as publisher,
        client.subscribe_channel("Of", name="a") as events,
    ):
        await events.in_effect()
        taken = await post(
            caller,
            {"sensor": "a", "value": 1.0},
            {"sensor": "b", "value": "high"},
            {"sensor": None, "value": 3},
            producer="p",
            first_sequence=1,
        )
        assert taken == api.Taken(1, 2, 0)
        again = await post(caller, {"sensor": "a", "value": 1.0}, producer="p",
                           first_sequence=1)  # fmt: skip
        assert again == api.Taken(0, 0, 1)
        await publisher.advertise(ADVERTISED)
        await publisher.publish({"class": "READING", "sensor": "a", "value": 2})
        taken_values = [(await anext(events)).content["value"] for _ in range(2)]
        assert taken_values == [1.0, 2.0]
        await until(lambda: has(caller, "Readings_quarantine", 2))
        assert await rows(caller, "Readings") == 2
        shown = await caller.call(api.CHANNEL, api.Named("Of"))
        assert shown.subscriptions == 1
        assert shown.last[0].state == "done"
        plan = await caller.call(api.EXPLAIN, api.Named("Of"))
        assert "Join" in (plan.plan or "")


async def _a_dropped_channel_ends_its_subscriptions(
    brokers: Processes, _: Service, caller: HttpClient
) -> None:
    await say(caller, READINGS, OF)
    url = brokers.http("B1")
    async with (
        connect(brokers.url("B1")) as client,
        HttpClient(url, answer_s=60.0, attempts=1) as http,
    ):
        events = client.subscribe_channel("Of", name="a")
        await events.in_effect()
        session = (await http.call(broker_api.LOGIN, broker_api.Login("u"))).session
        wanted = broker_api.SubscribeChannel(session=session, channel="Of", arguments={"name": "a"})
        id = (await http.call(broker_api.SUBSCRIBE, wanted)).subscription
        await post(caller, {"sensor": "a", "value": 1.0})
        assert (await anext(events)).content == {"sensor": "a", "value": 1.0}
        reading = asyncio.create_task(anext(events))
        await say(caller, "DROP CHANNEL Of")
        with pytest.raises(EndedError, match="channel Of was dropped"):
            await reading
        with pytest.raises(EndedError, match="channel Of was dropped"):
            await events.in_effect()
        page = await http.call(broker_api.RESULTS, broker_api.ResultsAfter(session=session))
        assert page.ended == {id: "channel Of was dropped"}
        with pytest.raises(RefusedError, match="channel Of was dropped"):
            await client.subscribe_channel("Of", name="a").in_effect()
        await say(caller, OF)
        again = client.subscribe_channel("Of", name="a")
        await again.in_effect()
        await post(caller, {"sensor": "a", "value": 2.0})
        assert (await anext(again)).content == {"sensor": "a", "value": 2.0}
        old = msgspec.structs.replace(wanted, start=(1, 0))
        with pytest.raises(RestError, match="channel Of was dropped"):
            await http.call(broker_api.SUBSCRIBE, old)


async def has(caller: HttpClient, dataset: str, count: int) -> bool:
    return await rows(caller, dataset) == count


async def _what_is_wrong_is_said_and_harms_nothing(
    brokers: Processes, _: Service, caller: HttpClient
) -> None:
    await say(caller, READINGS, OF)
    wrong = {
        "CREATE DATASET Readings (a INT)": "already",
        "CREATE DATASET X (a GEOMETRY)": "a type",
        "CREATE CHANNEL C(x INT) CONTINUOUS AS SELECT * FROM NEW Nothing": "Nothing",
        "CREATE CHANNEL C(x INT) CONTINUOUS AS SELECT reflect('java.lang.System', 'exit',"
        " 0) FROM NEW Readings WHERE value = :x": "reflect",
        "CREATE CHANNEL C(x INT) CONTINUOUS AS SELECT sensor FROM NEW Readings": "x",
        "DROP DATASET Readings": "Of",
        "DROP TABLE Readings; DROP DATASET Readings": "expected DATASET, FEED or CHANNEL",
        "SELECT 1": "CREATE or DROP",
    }
    for text, hint in wrong.items():
        with pytest.raises(RestError, match=hint) as refused:
            await say(caller, text)
        assert refused.value.status == 400, text
    async with connect(brokers.url("B1")) as client:
        hostile = "a' OR 1 = 1; DROP DATASET Readings --"
        async with client.subscribe_channel("Of", name=hostile) as odd:
            await odd.in_effect()
            await post(caller, {"sensor": hostile, "value": 5}, {"sensor": "a", "value": 6})
            event = await anext(odd)
            assert event.content == {"sensor": hostile, "value": 5.0}
    with pytest.raises(RestError) as refused:
        await caller.call(api.LOAD, api.LoadFile("Readings", "/etc/passwd"))
    assert refused.value.status == 400


async def _an_execution_that_cannot_succeed_is_skipped(
    brokers: Processes, service: Service, caller: HttpClient
) -> None:
    """Refused while there is nothing to skip; then the channel goes on with the next batch."""

    await say(caller, READINGS, FAILING)
    for name, status, reason in (
        ("Nope", 400, "there is no channel Nope"),
        ("Failing", 409, "channel Failing has no planned execution"),
    ):
        with pytest.raises(RestError, match=reason) as refused:
            await caller.call(api.SKIP_EXECUTION, api.SkipExecution(name))
        assert refused.value.status == status
    async with (
        connect(brokers.url("B1")) as client,
        client.subscribe_channel("Failing", name="7") as events,
    ):
        await events.in_effect()
        await post(caller, {"sensor": "a", "value": 1.0})
        await until(lambda: has_failed(caller, "Failing"))
        said = await command("channel", "skip", "Failing", "--url", service.url)
        assert said.startswith("skipped execution 1 of Failing after ")
        assert "CAST_INVALID_INPUT" in said
        await post(caller, {"sensor": "7", "value": 2.0})
        assert (await anext(events)).content == {"sensor": "7", "value": 2.0}
        shown = await caller.call(api.CHANNEL, api.Named("Failing"))
        assert [each.state for each in shown.last] == ["done", "skipped"]
        metrics = await get(f"{service.url}/metrics")
        assert 'godwit_channel_subscriptions{channel="Failing"} 1.0' in metrics
        assert "godwit_be_subscriptions" not in metrics, "that is a broker's"


async def has_failed(caller: HttpClient, channel: str) -> bool:
    last = (await caller.call(api.CHANNEL, api.Named(channel))).last
    return bool(last) and last[0].error is not None


async def command(*words: str) -> str:
    """What `godwit ...` prints."""
    result = await asyncio.to_thread(CliRunner().invoke, app, list(words))
    assert result.exit_code == 0, result.output
    return result.output


async def get(url: str) -> str:
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(url)).text


def test_acts_that_share_a_data_cluster(tmp_path: Path) -> None:
    """Each creates what it needs; then it is dropped.  Starting Spark takes longer than an act."""

    async def history() -> None:
        async with scene(tmp_path) as (brokers, service, caller):
            for act, made in (
                (_from_post_and_publication_to_subscriber, ("FEED readings", "CHANNEL Of")),
                (_a_dropped_channel_ends_its_subscriptions, ("CHANNEL Of",)),
                (_what_is_wrong_is_said_and_harms_nothing, ("CHANNEL Of",)),
                (_an_execution_that_cannot_succeed_is_skipped, ("CHANNEL Failing",)),
            ):
                await act(brokers, service, caller)
                await say(caller, *(f"DROP {each}" for each in (*made, "DATASET Readings")))
            assert await service.stop() == 0

    play(history, within_s=900)


def test_when_too_much_waits_the_poster_is_told_to(tmp_path: Path) -> None:
    """A small quota: what was taken is there, what was refused was not taken."""

    async def history() -> None:
        config = tmp_path / "small.toml"
        config.write_text("waiting_bytes_max = 65536\ninterval_s = 2\n")
        async with scene(tmp_path, "--config", str(config)) as (_, _, caller):
            await say(caller, READINGS)
            accepted, refused = 0, list[RestError]()
            for sequence in range(40):
                record = {"sensor": f"s{sequence}", "value": sequence, "note": "x" * 50_000}
                records = [{**record, "sensor": "y" * 4_000 + str(k)} for k in range(10)]
                try:
                    taken = await post(caller, *records)
                    accepted += taken.accepted
                except RestError as error:
                    refused.append(error)
            assert accepted
            assert {error.status for error in refused} == {503}
            assert all(error.retry_after_s for error in refused)
            await until(lambda: has(caller, "Readings", accepted))

    play(history)


def test_kills_lose_nothing_and_repeat_nothing() -> None:
    async def history() -> None:
        console = Console(quiet=True)
        outcome = await run(cluster_kills=1, broker_kills=1, java_kills=1, seed=3, console=console)
        assert outcome.faults == []
        assert sorted(outcome.kills) == ["B1", "Java", "data cluster"]
        assert outcome.published == outcome.delivered > 100

    play(history, within_s=800)


@in_sweeps  # Four times the start of Spark; tests/datacluster/test_lease.py has the protocol.
def test_a_standby_takes_over_without_loss() -> None:
    """Once from a process that was killed, and once from one that was asleep and wakes."""

    async def history() -> None:
        console = Console(quiet=True)
        outcome = await run(cluster_kills=0, broker_kills=0, take_overs=2, seed=2, console=console)
        assert outcome.faults == []
        assert len(outcome.take_overs_s) == 2
        assert outcome.published == outcome.delivered > 100

    play(history, within_s=800)


def test_channels_on_a_standalone_cluster(tmp_path: Path) -> None:
    """A master and two workers: from publication to subscriber, by equality and by distance."""
    near = """CREATE CHANNEL Near(latitude DOUBLE, longitude DOUBLE) CONTINUOUS AS
    SELECT r.name, p.name AS place FROM NEW Reports r
    JOIN Places p ON distance(r.latitude, r.longitude, p.latitude, p.longitude) < 500
    WHERE distance(r.latitude, r.longitude, :latitude, :longitude) < 1000"""
    places = tmp_path / "places.csv"
    places.write_text("name,latitude,longitude\nhere,60.17,24.94\nthere,60.27,24.94\n")

    async def history(master: str) -> None:
        async with scene(tmp_path, "--master", master) as (brokers, _, caller):
            await say(
                caller,
                "CREATE DATASET Reports (name STRING, latitude DOUBLE, longitude DOUBLE)",
                "CREATE DATASET Places (name STRING, latitude DOUBLE, longitude DOUBLE) STATIC",
            )
            await caller.call(api.LOAD, api.LoadFile("Places", str(places)))
            await say(caller, near, """CREATE CHANNEL Named(wanted STRING) CONTINUOUS AS
                SELECT name, latitude FROM NEW Reports WHERE name = :wanted""")  # fmt: skip
            async with (
                connect(brokers.url("B1")) as client,
                client.subscribe_channel("Named", wanted="fire 7") as named,
                client.subscribe_channel("Near", latitude=60.171, longitude=24.94) as nearby,
            ):
                await named.in_effect()
                await nearby.in_effect()
                records = [
                    {"name": f"fire {n}", "latitude": 60.17 + n / 100, "longitude": 24.94}
                    for n in range(20)
                ]
                raw = [msgspec.Raw(msgspec.json.encode(record)) for record in records]
                await caller.call(api.RECORDS, api.Records("Reports", raw))
                assert (await anext(named)).content == {"name": "fire 7", "latitude": 60.24}
                assert (await anext(nearby)).content == {"name": "fire 0", "place": "here"}

    with standalone(tmp_path / "spark") as master:
        play(lambda: history(master))
