"""Brokers let clients measure how far others are; nobody waits for an answer for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import pytest
from tests.asynchronous import run, until
from tests.runtime.scenes import client_port, publish, publishing

from godwit.broker.modules import AskForPings, PolicyModule, Request
from godwit.broker.stimuli import Hop
from godwit.client import Client
from godwit.content.messages import Publication
from godwit.overlay.topology import chain
from godwit.protocol.frames import MeasureRoundTrips, RoundTrips, encode
from godwit.protocol.probe import Probe
from godwit.runtime import pings
from godwit.testing.memory_network import MemoryNetwork

PLACES = (("B1", "memory://B1"), ("B2", "memory://B2"), ("B3", "memory://B3"))


class Asking(PolicyModule):
    """Asks about some brokers whenever a client publishes."""

    name = "asking"

    def __init__(self) -> None:
        self.places: tuple[tuple[str, str], ...] = PLACES
        self.about = "paul"
        self.found: list[tuple[str, dict[str, float]]] = []

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        return [AskForPings(self.about, self.places)]

    def on_pinged(
        self, client: str, round_trips_s: dict[str, float], now_s: float
    ) -> Iterable[Request]:
        self.found.append((client, round_trips_s))
        return ()


@asynccontextmanager
async def asked() -> AsyncIterator[tuple[MemoryNetwork, Client, Asking]]:
    """Three brokers, and Paul, of whom B1 wants to know something."""
    asking = Asking()
    modules = {"B1": [asking], "B2": [], "B3": []}
    async with (
        MemoryNetwork(chain(3), modules=lambda broker: modules[broker]) as network,
        publishing(network, "B1", "paul") as paul,
    ):
        yield network, paul, asking


def test_a_client_measures_how_far_brokers_are() -> None:
    async def scenario() -> None:
        async with asked() as (network, paul, asking):
            await publish(paul, range(1))
            await until(lambda: bool(asking.found))

            ((client, found),) = asking.found
            assert client == "paul"
            assert found.keys() == {"B1", "B2", "B3"}
            assert all(0 < seconds < 1 for seconds in found.values())
            for node in network.nodes.values():
                assert (len(node.callers), node.refused) == (0, 0)
            assert client_port(network, "B1", "paul").is_connected

    run(scenario())


def test_who_is_not_there_or_somebody_else_is_missing() -> None:
    async def scenario() -> None:
        async with asked() as (network, paul, asking):
            asking.places = (
                ("B1", "memory://B1"),
                ("B2", "memory://B3"),  # Where somebody else answers.
                ("B3", "memory://B3"),  # Which is just stopping.
                ("B9", "memory://B9"),
                ("B8", "no address at all"),
            )
            network.nodes["B3"].is_stopping = True
            await publish(paul, range(1))
            await until(lambda: bool(asking.found))
            assert asking.found[0][1].keys() == {"B1"}

    run(scenario())


def test_a_broker_that_says_nothing_takes_as_long_as_it_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silence(_knocking: Probe, _opener: object) -> tuple[str, float]:
        await asyncio.Event().wait()
        return "", 0.0

    async def scenario() -> None:
        async with asked() as (_, paul, asking):
            await publish(paul, range(1))
            await until(lambda: bool(asking.found))
            assert asking.found == [("paul", {})]

    monkeypatch.setattr(Probe, "round_trip", silence)
    monkeypatch.setattr(pings, "PING_S", 0.05)
    run(scenario())


def test_a_client_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with asked() as (_, paul, asking):
            questions: list[MeasureRoundTrips] = []
            monkeypatch.setattr(paul._pinger, "on_asked", questions.append)
            await publish(paul, range(1))
            await until(lambda: bool(asking.found))
            assert asking.found == [("paul", {})]

            # It answers after all.
            answer = RoundTrips(question=questions[0].question, seconds=[1.0, 1.0, 1.0])
            paul.session.put(answer)
            await publish(paul, range(1, 2))
            await until(lambda: len(asking.found) == 2)
            assert asking.found[1] == ("paul", {})

    monkeypatch.setattr(pings, "PING_S", 0.05)
    monkeypatch.setattr(pings, "GRACE_S", 0.05)
    run(scenario())


def test_a_client_that_is_not_there_has_found_nothing() -> None:
    async def scenario() -> None:
        async with asked() as (_, paul, asking):
            asking.about = "nobody"
            await publish(paul, range(1))
            await until(lambda: bool(asking.found))
            assert asking.found == [("nobody", {})]

    run(scenario())


def test_answers_that_nobody_asked_for_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with (
            asked() as (network, paul, asking),
            network.connect("B1", name="mallory") as mallory,
        ):
            questions: list[MeasureRoundTrips] = []
            monkeypatch.setattr(paul._pinger, "on_asked", questions.append)
            await publish(paul, range(1))
            await until(lambda: bool(questions))
            number = questions[0].question
            for client, answer in (
                (mallory, RoundTrips(question=number, seconds=[9.0])),
                (paul, RoundTrips(question=99, seconds=[9.0])),
            ):
                client.session.put(answer)
                await client.flush()
            # Too short and too long are taken for what they say.
            paul.session.put(RoundTrips(question=number, seconds=[0.5]))
            await until(lambda: bool(asking.found))
            assert asking.found == [("paul", {"B1": 0.5})]

    run(scenario())


def test_an_answer_that_is_no_time_ends_the_connection() -> None:
    async def scenario() -> None:
        async with asked() as (network, paul, _asking):
            paul.session.stream.put(encode(RoundTrips(question=1, seconds=[float("nan")])))
            paul.broker_connection.flush()
            await until(lambda: network.nodes["B1"].refused == 1)

    run(scenario())


def test_a_client_that_is_closed_meanwhile_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silence(_knocking: Probe, _opener: object) -> tuple[str, float]:
        await asyncio.Event().wait()
        return "", 0.0

    async def scenario() -> None:
        async with asked() as (_, paul, asking):
            await publish(paul, range(1))
            await until(lambda: bool(paul._pinger._tasks))
            await paul.close()
            await until(lambda: not paul._pinger._tasks)
            assert not asking.found

    monkeypatch.setattr(Probe, "round_trip", silence)
    run(scenario())
