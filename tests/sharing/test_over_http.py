"""Channels for subscribers that only speak HTTP: real requests, brokers in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from tests.asynchronous import run, until
from tests.runtime.test_http import Observed
from tests.sharing.clusters import CHANNEL, MemoryCluster

from godwit.api import broker_api as api
from godwit.content.channel_messages import ChannelSubscriptionId, Position, Row
from godwit.errors import RefusedError
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.http.serving import serve
from godwit.overlay.topology import chain
from godwit.runtime.broker_http import application
from godwit.runtime.settings import Limits
from godwit.sharing import gateway as gateway_module
from godwit.sharing import http_session as sessions_module
from godwit.sharing.live_channels import LiveChannels
from godwit.testing.memory_network import MemoryNetwork


class Asking:
    """A broker, as a subscriber sees it over HTTP."""

    def __init__(self, observed: Observed, caller: HttpClient) -> None:
        self.gateway = observed.gateway
        self.node = observed.node
        self.caller = caller

    @property
    def channels(self) -> LiveChannels:
        assert self.node.channels is not None
        return self.node.channels

    async def login(self, user: str = "ann") -> str:
        return (await self.caller.call(api.LOGIN, api.Login(user))).session

    async def subscribe(
        self,
        session: str,
        n: int = 1,
        *,
        start: Position | None = None,
        channel: str = CHANNEL,
        wait_s: float = 10.0,
    ) -> str:
        request = api.SubscribeChannel(
            session=session, channel=channel, arguments={"n": n}, start=start, wait_s=wait_s
        )
        return (await self.caller.call(api.SUBSCRIBE, request)).subscription

    async def results(
        self, session: str, positions: object = None, wait_s: float = 10.0
    ) -> api.ResultsPage:
        given: Any = positions or {}
        request = api.ResultsAfter(session=session, positions=given, wait_s=wait_s)
        return await self.caller.call(api.RESULTS, request)


@contextlib.asynccontextmanager
async def asking(network: MemoryNetwork, broker: str = "B1") -> AsyncIterator[Asking]:
    observed = Observed(network.nodes[broker])
    async with serve(application(observed), "127.0.0.1", 0) as url:
        async with HttpClient(url, attempts=1, answer_s=30.0) as caller:
            yield Asking(observed, caller)
        observed.gateway.close()


def play(
    history: Callable[[MemoryCluster, Asking], Coroutine[Any, Any, None]],
    limits: Limits | None = None,
) -> None:
    """A history at one broker."""

    async def within_time() -> None:
        cluster = MemoryCluster()
        async with (
            MemoryNetwork(cluster=cluster, limits=limits) as network,
            asking(network) as broker,
        ):
            await history(cluster, broker)

    run(within_time(), within_s=60)


def numbers(cluster: MemoryCluster, n: int = 1, count: int = 3, text: str = "") -> None:
    execution = cluster.execution + 1
    rows: list[Row] = [{"e": execution, "k": k, "text": text} for k in range(count)]
    cluster.execute({cluster.ids[f"{float(n)}"]: rows})


def seen(results: api.ResultsPage) -> list[tuple[int, int]]:
    """Execution and row of each."""
    found = []
    for part in results.results:
        for row, content in enumerate(part.rows, part.first):
            assert (content["e"], content["k"]) == (part.execution, row)
            found.append((part.execution, row))
    return found


def test_from_login_to_logout() -> None:
    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        one, two = await broker.subscribe(session, 1), await broker.subscribe(session, 2)
        numbers(cluster, 1)
        answer = await broker.results(session)
        assert seen(answer) == [(1, 0), (1, 1), (1, 2)]
        assert {part.subscription for part in answer.results} == {one}
        assert answer.positions == {one: (2, 0), two: (1, 0)}
        ended = api.UnsubscribeChannel(session, ChannelSubscriptionId(one))
        for _ in range(2):  # The second time there is nothing left to do.
            await broker.caller.call(api.UNSUBSCRIBE, ended)
        await until(lambda: cluster.holders[0] == set())
        assert cluster.released == set(), "it ended for good"
        for _ in range(2):
            await broker.caller.call(api.LOGOUT, api.Logout(session))
        await until(lambda: cluster.holders[1] == set())
        assert cluster.released == {1}, "who logs out may come back"
        assert broker.channels.desk.front_ends == broker.gateway.sessions == 0
        with pytest.raises(RestError, match="log in") as refused:
            await broker.results(session)
        assert refused.value.status == 404

    play(history)


def test_what_is_not_acknowledged_is_sent_again() -> None:
    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        id = await broker.subscribe(session)
        numbers(cluster)
        first = await broker.results(session)
        assert await broker.results(session) == first, "nobody said that it has arrived"
        numbers(cluster, count=1)
        await until(lambda: broker.channels.desk.pulls(lambda _: True, 0) == [])
        assert seen(await broker.results(session, {id: (1, 1)})) == [(1, 1), (1, 2), (2, 0)]
        last = await broker.results(session, first.positions)
        assert seen(last) == [(2, 0)]
        none = await broker.results(session, last.positions, wait_s=1)
        assert (none.results, none.positions) == ([], last.positions)
        await until(lambda: cluster.acknowledged.get(("B1", 0)) == (3, 0))

    play(history)


def test_a_question_waits_for_an_answer() -> None:
    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        await broker.subscribe(session)
        waiting = asyncio.create_task(broker.results(session, wait_s=30))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        numbers(cluster)
        assert seen(await waiting) == [(1, 0), (1, 1), (1, 2)]

    play(history)


def test_the_latest_question_counts() -> None:
    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        await broker.subscribe(session)
        older = asyncio.create_task(broker.results(session, wait_s=30))
        await until(lambda: broker.gateway._sessions[session].poll is not None)
        newer = asyncio.create_task(broker.results(session, wait_s=30))
        with pytest.raises(RestError, match="in its place") as refused:
            await older
        assert refused.value.status == 409
        numbers(cluster)
        assert seen(await newer) == [(1, 0), (1, 1), (1, 2)]

    play(history)


def test_who_asks_for_the_same_gets_the_same() -> None:
    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        cluster.is_away = True
        asked = [asyncio.create_task(broker.subscribe(session)) for _ in range(3)]
        await asyncio.sleep(0.05)
        cluster.is_away = False
        ids = {await task for task in asked}
        assert ids == {await broker.subscribe(session)}
        other = await broker.login("bob")
        assert await broker.subscribe(other) not in ids
        assert (broker.channels.desk.front_ends, broker.channels.desk.back_ends) == (2, 1)

    play(history)


def test_another_session_goes_on_where_one_was() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster()
        async with (
            MemoryNetwork(chain(2), cluster=cluster) as network,
            asking(network, "B1") as here,
            asking(network, "B2") as there,
        ):
            session = await here.login()
            id = await here.subscribe(session)
            numbers(cluster)
            assert len(seen(await here.results(session))) == 3
            await here.caller.call(api.LOGOUT, api.Logout(session))
            numbers(cluster)
            session = await there.login()
            again = await there.subscribe(session, start=(1, 2))
            answer = await there.results(session)
            assert again != id
            assert seen(answer) == [(1, 2), (2, 0), (2, 1), (2, 2)]

    run(scenario())


def test_a_session_that_nobody_uses_ends() -> None:
    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        session, idle = await broker.login(), await broker.login("bob")
        for each in (session, idle):
            await broker.subscribe(each, 1 if each == session else 2)
        answer = await broker.results(session, wait_s=3)  # Longer than a session may be idle.
        assert answer.results == []
        assert broker.gateway.sessions == 1
        await until(lambda: cluster.released == {1})
        await until(lambda: broker.gateway.sessions == 0)
        await until(lambda: cluster.released == {0, 1})
        for each in (session, idle):
            with pytest.raises(RestError, match="log in"):
                await broker.subscribe(each)

    play(history, Limits(session_s=2.0))


def test_the_latest_login_of_a_user_counts() -> None:
    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        former = await broker.login()
        await broker.subscribe(former)
        asked = asyncio.create_task(broker.results(former, wait_s=30))
        await until(lambda: broker.gateway._sessions[former].poll is not None)
        cluster.is_away = True
        waiting = asyncio.create_task(broker.subscribe(former, 2, wait_s=30))
        await until(lambda: len(broker.gateway._sessions[former].wanted) == 2)
        session = await broker.login()
        for task in (asked, waiting):
            with pytest.raises(RestError, match="log in"):
                await task
        cluster.is_away = False
        assert broker.gateway.sessions == 1
        await broker.subscribe(session)
        numbers(cluster)
        assert len(seen(await broker.results(session))) == 3

    play(history)


def test_users_and_connected_clients_have_names_of_their_own() -> None:
    async def scenario() -> None:
        cluster = MemoryCluster()
        async with (
            MemoryNetwork(cluster=cluster) as network,
            asking(network) as broker,
            network.connect(name="ann") as ann,
            ann.subscribe_channel(CHANNEL, n=1) as events,
        ):
            await events.in_effect()
            session = await broker.login("ann")
            await broker.subscribe(session)
            numbers(cluster)
            assert [(await anext(events)).row for _ in range(3)] == [0, 1, 2]
            assert len(seen(await broker.results(session))) == 3
            assert set(broker.channels.online()) == {"ann"}, "over HTTP nobody can be moved"
            await broker.caller.call(api.LOGOUT, api.Logout(session))
            numbers(cluster)
            assert [(await anext(events)).execution for _ in range(3)] == [2, 2, 2]
            with pytest.raises(RefusedError, match="names that start with"):
                async with network.connect(name="$http.ann"):
                    pass

    run(scenario())


def test_what_is_wrong_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_module, "SUBSCRIPTIONS_MAX", 2)

    async def history(_cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        with pytest.raises(RestError, match="there is no channel Nonsense") as refused:
            await broker.subscribe(session, channel="Nonsense")
        assert refused.value.status == 400
        id = await broker.subscribe(session)
        await broker.subscribe(session, 2)
        with pytest.raises(RestError, match="at most 2 subscriptions") as refused:
            await broker.subscribe(session, 3)
        assert refused.value.status == 429
        with pytest.raises(RestError, match=r"sent up to \[1, 0\] only") as refused:
            await broker.results(session, {id: (9, 0)})
        assert (refused.value.status, refused.value.where) == (400, f"$.positions.{id}")
        await broker.results(session, {"gone": (9, 0)}, wait_s=1)
        with pytest.raises(RestError, match="not a request to results") as refused:
            await broker.results(session, wait_s=0)
        assert refused.value.where == "$.wait_s"
        await broker.login("bob")
        with pytest.raises(RestError, match="too many sessions") as refused:
            await broker.login("cyd")
        assert (refused.value.status, refused.value.retry_after_s) == (503, 1.0)
        await broker.login("bob")  # In the place of the other.

    play(history, Limits(connections_max=2))


def test_without_a_data_cluster_there_are_no_channels() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network, asking(network) as broker:
            with pytest.raises(RestError, match="has no data cluster") as refused:
                await broker.login()
            assert refused.value.status == 404

    run(scenario())


def test_a_data_cluster_that_is_away_can_be_asked_later() -> None:
    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        cluster.is_away = True
        with pytest.raises(RestError, match="ask again") as refused:
            await broker.subscribe(session, wait_s=1)
        assert (refused.value.status, refused.value.retry_after_s) == (503, 1.0)
        assert (await broker.results(session, wait_s=1)).positions == {}
        cluster.is_away = False
        id = await broker.subscribe(session)
        numbers(cluster)
        assert (await broker.results(session)).positions == {id: (2, 0)}

    play(history)


def test_a_subscription_that_the_data_cluster_drops_is_reported() -> None:
    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        id = await broker.subscribe(session)
        waiting = asyncio.create_task(broker.results(session, wait_s=30))
        await until(lambda: broker.gateway._sessions[session].poll is not None)
        cluster.forget(CHANNEL)
        assert (await waiting).ended == {id: f"channel {CHANNEL} was dropped"}
        cluster.dropped.clear()
        assert await broker.subscribe(session) != id

    play(history)


def test_large_results_come_in_several_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And an absent reader costs nothing: no result is at the broker before it is asked for."""
    monkeypatch.setattr(sessions_module, "ANSWER_BYTES_MAX", 300_000)

    async def history(cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        await broker.subscribe(session)
        for _ in range(6):
            numbers(cluster, count=20, text="x" * 20_000)
        await asyncio.sleep(0.1)
        assert broker.channels.bytes_in == 0
        taken, answers = list[tuple[int, int]](), 0
        positions: dict[ChannelSubscriptionId, Position] = {}
        while len(taken) < 120:
            answer = await broker.results(session, positions)
            taken += seen(answer)
            positions, answers = answer.positions, answers + 1
        assert taken == [(e + 1, k) for e in range(6) for k in range(20)]
        assert answers == 6
        assert broker.gateway._sessions[session].poll is None

    play(history)


def test_a_broker_that_is_drained_begins_no_new_session() -> None:
    async def history(_cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login("ann")
        broker.node.is_draining = True
        with pytest.raises(RestError, match="being drained; log in at another broker") as refused:
            await broker.login("bob")
        assert refused.value.status == 503
        await broker.subscribe(session)  # Those that are there go on, ...
        await broker.login("ann")  # ... and may log in again.
        broker.node.is_draining = False
        await broker.login("bob")

    play(history)


def test_a_broker_that_stops_lets_everybody_go() -> None:
    async def history(_cluster: MemoryCluster, broker: Asking) -> None:
        session = await broker.login()
        waiting = asyncio.create_task(broker.results(session, wait_s=30))
        await until(lambda: broker.gateway._sessions[session].poll is not None)
        broker.gateway.close()
        with pytest.raises(RestError, match="log in"):
            await waiting
        with pytest.raises(RestError, match="is stopping") as refused:
            await broker.login()
        assert refused.value.status == 503

    play(history)
