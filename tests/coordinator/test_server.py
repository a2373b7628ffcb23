"""The coordinator over HTTP on loopback, with brokers that are stubs of HTTP only."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import IO

import httpx
import msgspec
import pytest
from tests.asynchronous import run, until
from tests.coordinator.scenes import QUICK, report

from godwit.api import coordinator_api
from godwit.api.broker_api import MOVE, MoveOutcome, MoveRequest
from godwit.coordinator.server import CoordinatorServer
from godwit.coordinator.spark_shuffle import SparkShuffle
from godwit.errors import UsageError
from godwit.http.application import application
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing, served
from godwit.http.serving import serve

MANUAL = Path(__file__).parents[2] / "docs" / "coordinator.md"


@contextlib.asynccontextmanager
async def running(
    folder: Path, **settings: object
) -> AsyncIterator[tuple[CoordinatorServer, HttpClient]]:
    given = msgspec.structs.replace(QUICK, listen="127.0.0.1:0", state=str(folder), **settings)
    async with CoordinatorServer(given) as server, HttpClient(server.url, attempts=1) as caller:
        yield server, caller


class MovingBroker:
    """The HTTP side of a broker: does what it is asked, except for those who stay."""

    def __init__(self, *, stays: str = "") -> None:
        self.requests: list[MoveRequest] = []
        self._stays = stays

    async def move(self, request: MoveRequest) -> MoveOutcome:
        self.requests.append(request)
        moved = [name for name in request.clients if name != self._stays]
        stayed = {name: "no wish" for name in request.clients if name == self._stays}
        return MoveOutcome(moved=moved, stayed=stayed, unknown=[])

    def serving(self) -> contextlib.AbstractAsyncContextManager[str]:
        return serve(application([served(MOVE, self.move)], title="B"), "127.0.0.1", 0)


async def register(caller: HttpClient, number: int, http: str | None = None) -> None:
    url = f"godwit://127.0.0.1:{number}"
    await caller.call(
        coordinator_api.REGISTER_BROKER, coordinator_api.RegisterBroker(f"B{number}", url, http)
    )


def test_users_and_brokers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as (server, caller):
            with pytest.raises(RestError, match="user: user 'ann' is not registered") as refused:
                await caller.call(
                    coordinator_api.REQUEST_BROKER, coordinator_api.RequestBroker("ann")
                )
            assert refused.value.status == 404
            await caller.call(coordinator_api.REGISTER_USER, coordinator_api.RegisterUser("ann"))
            with pytest.raises(RestError, match="there is no live broker") as refused:
                await caller.call(
                    coordinator_api.REQUEST_BROKER, coordinator_api.RequestBroker("ann")
                )
            assert (refused.value.status, refused.value.retry_after_s) == (503, 10.0)
            with pytest.raises(RestError, match="broker: broker 'B1' is not registered"):
                await caller.call(coordinator_api.LOAD_REPORT, report("B1"))
            await register(caller, 1)
            answer = await caller.call(coordinator_api.LOAD_REPORT, report("B1", ["s1"]))
            assert answer == coordinator_api.Registered("B1", 10.0, server.core.authority)
            assigned = await caller.call(
                coordinator_api.REQUEST_BROKER, coordinator_api.RequestBroker("ann")
            )
            assert assigned == coordinator_api.Assigned("B1", "godwit://127.0.0.1:1", "round robin")
            with pytest.raises(RestError, match=r"url: .* is the address of broker B1") as refused:
                await caller.call(
                    coordinator_api.REGISTER_BROKER,
                    coordinator_api.RegisterBroker("B2", "godwit://127.0.0.1:1"),
                )
            assert refused.value.status == 409
            shown = await caller.call(coordinator_api.BROKERS, Nothing())
            assert [(b.broker, b.is_live, b.load, b.subscribers) for b in shown.brokers] == [
                ("B1", True, 200.0, 1)
            ]
            assert (shown.balance.maximum_load, shown.balance.sharing) == (200.0, 1.0)

    run(scenario())


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/registeruser", {"user": "a b"}, "$.user"),
        ("/registeruser", {"user": "a", "location": {"latitude": 91, "longitude": 0}},
         "$.location.latitude"),
        ("/registerbroker", {"broker": "B1", "url": "B1"}, "POST /registerbroker"),
        ("/requestbroker", {}, "$"),
        ("/loadreport", {"broker": "B1", "bytes_in_per_s": -1, "bytes_out_per_s": 0},
         "$.bytes_in_per_s"),
        ("/loadreport", {"broker": "B1", "bytes_in_per_s": 0, "bytes_out_per_s": 0,
                         "rates": {"x": 1.0}}, "$.rates"),
        ("/loadreport", {"broker": "B1", "bytes_in_per_s": 0, "bytes_out_per_s": 0,
                         "subscribers": {"c": [0.5]}}, "$.subscribers[...][0]"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path: Path, path: str, body: object, where: str) -> None:
    async def scenario() -> None:
        async with (
            running(tmp_path) as (server, _),
            httpx.AsyncClient(base_url=server.url, trust_env=False) as client,
        ):
            response = await client.post(path, json=body)
            assert (response.status_code, response.json()["where"]) == (400, where)

    run(scenario())


def test_moves_are_carried_out_by_the_brokers(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = MovingBroker(stays="s0")
        async with first.serving() as http, running(tmp_path, report_s=0.2) as (server, caller):
            await register(caller, 1, http)
            await register(caller, 2, http)
            await caller.call(coordinator_api.LOAD_REPORT, report("B1", ["s0", "s1", "s2", "s3"]))
            await caller.call(coordinator_api.LOAD_REPORT, report("B2"))
            await until(lambda: len(first.requests) > 0)
            await until(lambda: not server.core.rounds.is_under_way)
            (request,) = first.requests
            assert (request.address, request.broker) == ("godwit://127.0.0.1:2", "B2")
            assert set(request.clients) == {"s0", "s1"}
            plan = await caller.call(coordinator_api.PLAN, Nothing())
            assert plan.outcomes == {"moved": 1, "stayed": 1}
            moves = (
                await caller.call(
                    coordinator_api.MOVES, coordinator_api.WhichMoves(limit=1, client="s0")
                )
            ).moves
            assert [(m.outcome, m.because, m.target) for m in moves] == [
                ("stayed", "no wish", "B2")
            ]
            assert (
                len((await caller.call(coordinator_api.MOVES, coordinator_api.WhichMoves())).moves)
                == 2
            )

    run(scenario())


def test_a_broker_that_cannot_be_asked(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with MovingBroker().serving() as nobody:
            pass
        async with running(tmp_path, report_s=0.2) as (server, caller):
            await register(caller, 1, nobody)
            await register(caller, 2)
            await caller.call(coordinator_api.LOAD_REPORT, report("B1", ["s0", "s1"]))
            await caller.call(coordinator_api.LOAD_REPORT, report("B2"))
            await until(lambda: server.core.rounds.outcomes[coordinator_api.Outcome.UNKNOWN] > 0)
            (move,) = (await caller.call(coordinator_api.MOVES, coordinator_api.WhichMoves())).moves
            assert "/move: " in move.because

    run(scenario())


#: The one subscriber of B1 goes to B2, once there is somebody who reads the pipe.
JOB = """
import sys, numpy as np
open({pipe!r}).read()
np.save(sys.argv[1] + "/home.npy", np.array([0, 1], np.int32))
"""


def job_waiting_for(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(pipe)
    job = (sys.executable, "-c", JOB.format(pipe=str(pipe)))
    monkeypatch.setattr("godwit.coordinator.server.SparkShuffle", partial(SparkShuffle, job=job))


async def job_started(caller: HttpClient, pipe: Path) -> IO[str]:
    """The pipe that the job of a shuffle waits for; to close it is to let the job go on."""
    await register(caller, 1, "http://127.0.0.1:1")
    await register(caller, 2)
    await caller.call(coordinator_api.LOAD_REPORT, report("B1", ["s0", "s1"]))
    await caller.call(coordinator_api.LOAD_REPORT, report("B2"))
    return await asyncio.to_thread(pipe.open, "w")


def test_a_shuffle_on_spark_does_not_keep_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_waiting_for(tmp_path / "pipe", monkeypatch)

    async def scenario() -> None:
        settings = {"gamma": 0.2, "spark_from": 2, "dry_run": True}
        async with running(tmp_path / "state", **settings) as (server, caller):
            pipe = await job_started(caller, tmp_path / "pipe")
            shown = await caller.call(coordinator_api.BROKERS, Nothing())
            assert shown.balance.cov == 1.0
            assert server.core.memory.plan is None, "the job is still running"
            pipe.close()
            await until(lambda: server.core.memory.plan is not None)
            (move,) = (await caller.call(coordinator_api.MOVES, coordinator_api.WhichMoves())).moves
            assert (move.client, move.target) == ("s1", "B2")

    run(scenario())


def test_a_coordinator_that_stops_ends_its_shuffle_on_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_waiting_for(tmp_path / "pipe", monkeypatch)

    async def scenario() -> None:
        async with running(tmp_path / "state", gamma=0.2, spark_from=2) as (_, caller):
            pipe = await job_started(caller, tmp_path / "pipe")
        pipe.write("x")
        with pytest.raises(BrokenPipeError):  # Nobody reads it any more.
            pipe.close()

    run(scenario())


def test_without_spark_a_coordinator_that_needs_it_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit.coordinator.spark_shuffle.find_spec", lambda _name: None)
    with pytest.raises(UsageError, match="spark_from needs the package pyspark"):
        CoordinatorServer(msgspec.structs.replace(QUICK, state=str(tmp_path), spark_from=1))
    assert not list(tmp_path.iterdir()), "its state was not touched"


def test_a_coordinator_needs_no_spark_unless_it_is_set() -> None:
    """In a process of its own: this one has imported Spark long ago."""
    program = "import sys, godwit.coordinator.server; sys.exit('pyspark' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603  Our own.
    assert found.returncode == 0


def metrics(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_metrics_have_the_names_of_the_manual_and_the_right_numbers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, dry_run=True) as (server, caller):
            await register(caller, 1)
            await register(caller, 2)
            await register(caller, 3)
            server.core.registry._heard_s["B3"] -= 1000.0
            shared = coordinator_api.LoadReport("B1", 1.0, 2.0, {7: 10.0}, {"a": [7], "b": [7]})
            await caller.call(coordinator_api.LOAD_REPORT, shared)
            await caller.call(coordinator_api.LOAD_REPORT, report("B2"))
            await caller.call(coordinator_api.REGISTER_USER, coordinator_api.RegisterUser("a"))
            await until(lambda: server.core.memory.plan is not None)
            async with httpx.AsyncClient(trust_env=False) as client:
                found = metrics((await client.get(server.url + "/metrics")).text)
        prefix = "godwit_coordinator_"
        ours = {name.partition("{")[0] for name in found if name.startswith(prefix)}
        assert ours == set(re.findall(r"`(godwit_coordinator_\w+)", MANUAL.read_text()))
        expected = {
            'brokers{state="live"}': 2, 'brokers{state="silent"}': 1, "users": 1, "subscribers": 2,
            "fe_subscriptions": 2, "be_subscriptions": 1, "sharing_ratio": 2.0, "cov_ratio": 1.0,
            "mean_load_bytes_per_second": 15.0, "maximum_load_bytes_per_second": 30.0,
            'load_bytes_per_second{broker="B1"}': 30.0, "plans_total": 1,
            'moves_total{outcome="proposed"}': 1, 'moves_total{outcome="moved"}': 0,
            "moves_under_way": 0,
        }  # fmt: skip
        assert {name: found[prefix + name] for name in expected} == expected

    run(scenario())


def test_the_manual_lists_the_operations(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            running(tmp_path) as (server, _),
            httpx.AsyncClient(base_url=server.url, trust_env=False) as client,
        ):
            document = (await client.get("/openapi.json")).json()
            assert "requestbroker" in (await client.get("/docs")).text
        listed = set(re.findall(r"^\| `(?:GET|POST) (/[\w/{}]+)", MANUAL.read_text(), re.MULTILINE))
        assert listed == {*document["paths"], "/metrics", "/healthz"}

    run(scenario())


def test_a_state_that_cannot_be_kept_is_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as (server, caller):
            save = server._state.save

            def full(_changes: object) -> None:
                raise sqlite3.OperationalError("database or disk is full")

            monkeypatch.setattr(server._state, "save", full)
            with pytest.raises(RestError, match="cannot be saved: database or disk is full") as no:
                await caller.call(
                    coordinator_api.REGISTER_USER, coordinator_api.RegisterUser("ann")
                )
            assert no.value.status == 503
            async with httpx.AsyncClient(base_url=server.url, trust_env=False) as client:
                assert (await client.get("/healthz")).status_code == 503
                monkeypatch.setattr(server._state, "save", save)
                await caller.call(
                    coordinator_api.REGISTER_USER, coordinator_api.RegisterUser("bob")
                )
                healthy = await client.get("/healthz")
                assert (healthy.status_code, healthy.json()["healthy"]) == (200, True)
            assert set(server._state.load().users) == {"ann", "bob"}

    run(scenario())


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a") as (server, _):
            taken = server.url.removeprefix("http://")
            other = CoordinatorServer(
                msgspec.structs.replace(QUICK, listen=taken, state=str(tmp_path / "b"))
            )
            with pytest.raises(UsageError, match=r"cannot serve HTTP on .* in use"):
                await other.__aenter__()
        async with running(tmp_path / "b"):
            pass  # The folder was let go.

    run(scenario())
