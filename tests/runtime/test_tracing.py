"""The trace of a live broker: what it says of messages, and what becomes of it on a bad disk."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.asynchronous import run, until
from tests.trace.test_writer import files, rows

from godwit.broker.core import Broker
from godwit.broker.effects import Decision, Deliver, Effect
from godwit.broker.modules import BrokerView, PolicyModule, Request
from godwit.broker.routing import Place
from godwit.broker.stimuli import LocalClient, Neighbour, Received, Started
from godwit.client import connect
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Letter,
    Publication,
    Subscription,
    SubscriptionId,
)
from godwit.distribution import install_hint
from godwit.errors import UsageError
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.runtime import broker_trace as in_tracing
from godwit.runtime.broker_http import BrokerCollector
from godwit.runtime.broker_trace import BrokerTrace, Disk, prefix
from godwit.runtime.live_meters import resident_bytes
from godwit.runtime.server import BrokerServer
from godwit.runtime.settings import BrokerSettings, NetworkSettings, TraceSettings
from godwit.trace.background import ENOUGH
from godwit.trace.schema import TABLES

X = Filter.parse("x is a number")


def server(folder: Path | None, **settings: float) -> BrokerServer:
    b1 = BrokerSettings(id="B1")
    trace = TraceSettings(folder=None if folder is None else str(folder), **settings)  # type: ignore[arg-type]
    return BrokerServer(NetworkSettings(broker=[b1], trace=trace), b1)


async def play(broker: BrokerServer, *, publications: int) -> None:
    """Alice hears so many publications of paul, each of which comes with a read of its own."""
    async with (
        connect(broker.url, name="alice") as alice,
        connect(broker.url, name="paul") as paul,
        alice.subscribe("x > 0") as events,
    ):
        await events.in_effect()
        await paul.advertise("x is a number")
        for number in range(1, publications + 1):
            await paul.publish({"x": number})
            assert (await anext(events)).content == {"x": number}


def test_what_a_broker_did_is_in_the_folder_when_it_has_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        start_s = time.time()
        async with server(tmp_path) as broker:
            await play(broker, publications=3)
            assert [rows(tmp_path / table) for table in TABLES] == [[], [], [], []]
        end_s = time.time()

        handled = rows(tmp_path / "handled")
        kinds = [row["kind"] for row in handled]
        assert sorted(kinds[:2]) == ["Advertisement", "Subscription"]
        assert kinds[2:5] == ["Publication"] * 3
        for row in handled:
            assert start_s <= row["time_s"] <= end_s
            assert row["came_from"] in ("alice", "paul")
            assert 0.0 <= row["queue_delay_s"] < 1.0
            assert 0.0 < row["matching_delay_s"] < 1.0
            assert row["size_bytes"] > 0
        delivered = rows(tmp_path / "delivered")
        assert [(row["client"], row["publisher"]) for row in delivered] == [("alice", "paul")] * 3
        assert all(0.0 < row["delay_s"] < 1.0 for row in delivered)
        of_publications = [row["size_bytes"] for row in handled if row["kind"] == "Publication"]
        assert [row["size_bytes"] for row in delivered] == of_publications
        first, last = rows(tmp_path / "gauges")
        assert first["broker"] == last["broker"] == "B1"
        assert last["memory_bytes"] > 10_000_000
        assert broker.tracing is not None
        assert broker.tracing.rows == len(handled) + len(delivered) + 2
        assert broker.tracing.rows_lost == 0

    run(scenario())


def test_what_is_rotated_can_be_read_while_the_broker_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with server(tmp_path, rotate_s=0.05, gauges_every_s=0.05) as broker:
            await play(broker, publications=2)
            await until(lambda: len(rows(tmp_path / "delivered")) == 2)
            await until(lambda: len(rows(tmp_path / "gauges")) > 3)
        names = files(tmp_path / "gauges")
        assert not [name for name in names if name.startswith("_")]
        assert len({name.rpartition("-")[0] for name in names}) == 1

    run(scenario())


def test_gauges_are_read_before_everybody_is_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with server(tmp_path) as broker:
            alice = connect(broker.url, name="alice")
            events = (await alice.__aenter__()).subscribe("x > 0")
            await (await events.__aenter__()).in_effect()
        *_, last = rows(tmp_path / "gauges")
        assert (last["clients"], last["subscriptions"], last["advertisements"]) == (1, 1, 0)
        await alice.__aexit__(None, None, None)

    run(scenario())


def test_the_messages_of_one_read_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([10.0, 10.5, 10.75, 11.5, 20.0, 20.25])
    monkeypatch.setattr(in_tracing, "monotonic", lambda: next(clock))
    tracing = BrokerTrace(TraceSettings(folder=str(tmp_path)), "B1")
    broker = Broker("B1", routing=TreeRouting(Place.of("B1", ["B2"])))
    advertisement = Advertisement(id=AdvertisementId("p/a"), filter=X)
    publication = Publication(
        publisher="p", sequence=4, advertisement=advertisement.id, content={"x": 1},
        accepted_s=98.0, size_bytes=77,
    )  # fmt: skip
    tracing.handle(broker, Started(), 99.0)
    tracing.handle(broker, Received(advertisement, Neighbour("B2"), 3), 100.0)
    subscription = Subscription(id=SubscriptionId("a/s"), filter=X)
    tracing.handle(broker, Received(subscription, LocalClient("a")), 100.0)
    arrived = [(publication, 4, b"its bytes")]
    outcomes = broker.handle_run(arrived, Neighbour("B2"), now_s=200.0)
    ((effects, body),) = tracing.watch(outcomes, arrived, Neighbour("B2"), 200.0)
    assert effects == [Deliver((LocalClient("a"),), publication, 4)]
    assert body == b"its bytes"
    tracing._writer.close()
    tracing._disk._background._thread.join()

    times = ("time_s", "queue_delay_s", "matching_delay_s")
    found = rows(tmp_path / "handled")
    assert [tuple(row[column] for column in times) for row in found] == [
        (100.5, 0.0, 0.5),
        (101.5, 0.75, 0.75),
        (200.25, 0.0, 0.25),
    ]
    assert [row["size_bytes"] for row in found][2] == 77
    (delivery,) = rows(tmp_path / "delivered")
    assert (delivery["time_s"], delivery["delay_s"], delivery["hops"]) == (200.25, 102.25, 4)


class Decides(PolicyModule):
    """Each time something happens to it."""

    name = "decides"

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        return [Decision("stayed", "paul", "B1", "B1", {"load": 1.5})]

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        return [Decision("asked", "paul", "B1", "B2", {"load": 2.5})]


def test_what_modules_decide_is_in_the_trace(tmp_path: Path) -> None:
    tracing = BrokerTrace(TraceSettings(folder=str(tmp_path)), "B1")
    broker = Broker("B1", routing=TreeRouting(Place.of("B1", ["B2"])), modules=[Decides()])
    tracing.handle(broker, Started(), 99.0)
    letter = Letter(module="decides", body=b"")
    tracing.handle(broker, Received(letter, Neighbour("B2")), 100.0)
    tracing._writer.close()
    tracing._disk._background._thread.join()

    found = rows(tmp_path / "decisions")
    assert [(row["policy"], row["action"], row["target"], row["reason"]) for row in found] == [
        ("decides", "stayed", "B1", '{"load":1.5}'),
        ("decides", "asked", "B2", '{"load":2.5}'),
    ]
    (handled,) = rows(tmp_path / "handled")
    assert handled["kind"] == "Letter"


def test_a_broker_that_is_traced_is_an_ordinary_one(tmp_path: Path) -> None:
    plain, traced = server(None).node, server(tmp_path).node
    assert type(plain.broker) is type(traced.broker) is Broker
    assert plain.tracer is None
    assert traced.tracer is not None


def test_publications_before_one_that_cannot_be_handled_are_in_the_trace(tmp_path: Path) -> None:
    tracing = BrokerTrace(TraceSettings(folder=str(tmp_path)), "B1")

    def outcomes() -> Iterator[tuple[list[Effect], bytes]]:
        yield [], b""
        raise ZeroDivisionError

    def publication(sequence: int) -> Publication:
        return Publication(
            publisher="p", sequence=sequence, advertisement=AdvertisementId("p/a"), content={}
        )

    arrived = [(publication(number), 1, b"") for number in range(3)]
    watched = tracing.watch(outcomes(), arrived, Neighbour("B2"), 100.0)
    assert next(watched) == ([], b"")
    with pytest.raises(ZeroDivisionError):
        next(watched)
    tracing._writer.close()
    tracing._disk._background._thread.join()
    assert [row["sequence"] for row in rows(tmp_path / "handled")] == [0]


def test_a_disk_that_fails_ends_the_trace_and_not_the_broker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with server(tmp_path, rotate_s=0.05) as broker:
            tracing = broker.tracing
            assert tracing is not None
            await until(lambda: bool(rows(tmp_path / "gauges")))
            for table in TABLES:
                shutil.rmtree(tmp_path / table)
            await play(broker, publications=2)
            await until(lambda: not tracing.is_on)
            recorded = tracing.rows
            await play(broker, publications=5)
            assert tracing.rows == recorded

    with caplog.at_level(logging.ERROR):
        run(scenario())
    (said,) = caplog.records
    assert said.getMessage() == "trace ended"
    assert "No such file" in said.__dict__["reason"]


def test_a_disk_that_is_slow_loses_rows_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    disk, may_go_on, done = Disk(), threading.Event(), list[int]()

    def wait() -> None:
        may_go_on.wait()

    assert disk.run(wait)
    while disk._background._actions.qsize():
        time.sleep(0.001)
    assert [disk.run(lambda: done.append(1)) for _ in range(ENOUGH + 3)] == [
        *[True] * ENOUGH,
        *[False] * 3,
    ]
    (said,) = caplog.records
    assert said.getMessage() == "trace is incomplete"
    may_go_on.set()
    disk.finish()
    disk._background._thread.join()
    assert disk.is_done
    assert len(done) == ENOUGH


def test_an_operator_sees_how_long_the_trace_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with server(tmp_path) as broker:
            await play(broker, publications=3)
            collector = BrokerCollector(broker, broker.orders)
            found = {metric.name: metric.samples[0].value for metric in collector._traced()}
            assert found["godwit_trace_rows"] > 6
            assert found["godwit_trace_rows_lost"] == 0

    run(scenario())


@pytest.mark.parametrize(
    ("broker", "expected"), [("B1", "B1-20010909T014640-77-"), ("_a.b:c$", "-a-b-c--2001")]
)
def test_names_of_files_tell_the_broker_and_are_none_that_spark_overlooks(
    broker: str, expected: str
) -> None:
    assert prefix(broker, 1_000_000_000.0, 77).startswith(expected)


def test_the_memory_is_that_of_this_process() -> None:
    before = resident_bytes()
    ballast = bytearray(b"x") * 200_000_000
    assert 150_000_000 < resident_bytes() - before < 250_000_000
    del ballast


def test_a_folder_that_cannot_be_is_said_before_the_broker_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write a trace to"):
        server(tmp_path / "file")


@pytest.mark.parametrize("command", ["broker", "up"])
def test_without_its_packages_a_trace_is_refused_in_one_sentence(
    command: str, tmp_path: Path
) -> None:
    file = tmp_path / "net.toml"
    file.write_text('[[broker]]\nid = "B1"\n')
    arguments = ["broker", "--id", "B1"] if command == "broker" else ["up", str(file)]
    program = "import sys; sys.modules['pyarrow'] = None; from godwit.cli import main; main()"
    done = subprocess.run(  # noqa: S603  ourselves
        [sys.executable, "-c", program, *arguments, "--trace", str(tmp_path / "trace")],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.stderr == (f"godwit: a trace needs the package pyarrow: {install_hint('lab')}\n")
    assert done.returncode == 2
    assert not (tmp_path / "trace").exists()
