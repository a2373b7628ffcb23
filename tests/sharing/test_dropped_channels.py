"""DROP CHANNEL reaches every subscriber with its reason, wherever it is at that moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.asynchronous import run, until
from tests.sharing.clusters import CHANNEL, MemoryCluster
from tests.sharing.test_over_http import asking

from godwit import ChannelEvents, EndedError, RefusedError
from godwit.api.datacluster_api import ChannelDropped, Granted, Subscribe, Subscribed
from godwit.broker.stimuli import LocalClient
from godwit.content.channel_messages import ChannelSubscription, ChannelSubscriptionId
from godwit.content.messages import Refusal
from godwit.http.errors import RestError
from godwit.overlay.topology import chain
from godwit.runtime.settings import Limits
from godwit.sharing.shared_subscriptions import Ask, End, SharedSubscriptions, Tell
from godwit.testing.memory_network import MemoryNetwork

WHY = f"channel {CHANNEL} was dropped"
#: A client that is away is forgotten soon.
SHORT = Limits(session_s=0.05)


def play(
    history: Callable[[MemoryCluster, MemoryNetwork], Coroutine[Any, Any, None]],
    limits: Limits | None = None,
) -> None:
    async def within_time() -> None:
        cluster = MemoryCluster()
        async with MemoryNetwork(chain(2), cluster=cluster, limits=limits) as network:
            await history(cluster, network)

    run(within_time(), within_s=30)


def one_row(cluster: MemoryCluster) -> None:
    cluster.execute({cluster.ids["1.0"]: [{"k": 0}]})


async def ends(events: ChannelEvents) -> None:
    """Where the application waits, it is told why."""
    for _ in range(2):  # And again, if it asks again.
        with pytest.raises(EndedError, match=WHY):
            await anext(events)
        with pytest.raises(EndedError, match=WHY):
            await events.in_effect()


def test_subscribers_at_all_brokers_are_told() -> None:
    async def history(cluster: MemoryCluster, network: MemoryNetwork) -> None:
        async with (
            network.connect("B1") as a,
            network.connect("B2") as b,
            a.subscribe_channel(CHANNEL, n=1) as of_a,
            b.subscribe_channel(CHANNEL.lower().title(), n=1) as of_b,
        ):
            for events in (of_a, of_b):
                await events.in_effect()
            waits = asyncio.create_task(anext(of_b))
            one_row(cluster)
            assert (await waits).content == {"k": 0}
            await until(lambda: len(of_a.waiting) == 1)
            waits = asyncio.create_task(anext(of_b))
            cluster.drop(CHANNEL)
            with pytest.raises(EndedError, match=WHY):
                await waits
            assert (await anext(of_a)).content == {"k": 0}, "what has arrived is not lost"
            await ends(of_a)
            await ends(of_b)
            for broker in network.nodes.values():
                assert broker.channels is not None
                assert broker.channels.desk.front_ends == broker.channels.desk.back_ends == 0

    play(history)


@pytest.mark.parametrize("is_created_again", [False, True])
@pytest.mark.parametrize("limits", [None, SHORT], ids=["resumed", "forgotten"])
def test_a_client_that_is_away_is_told_when_it_is_back(
    limits: Limits | None, is_created_again: bool
) -> None:
    async def history(cluster: MemoryCluster, network: MemoryNetwork) -> None:
        async with (
            network.connect("B1", name="a", fall_back_s=0.2) as a,
            a.subscribe_channel(CHANNEL, n=1) as events,
        ):
            await events.in_effect()
            one_row(cluster)
            await anext(events)
            network.crash("B1")  # The client comes back to a broker that knows nothing of it.
            cluster.drop(CHANNEL)
            if is_created_again:
                cluster.create(CHANNEL)
            await network.restart("B1")
            await ends(events)
            if is_created_again:
                async with a.subscribe_channel(CHANNEL, n=1) as again:
                    await again.in_effect()
                    one_row(cluster)
                    assert (await anext(again)).content == {"k": 0}

    play(history, limits)


def test_a_client_whose_connection_is_cut_is_told_when_it_is_back() -> None:
    async def history(cluster: MemoryCluster, network: MemoryNetwork) -> None:
        async with (
            network.connect("B1", name="a") as a,
            a.subscribe_channel(CHANNEL, n=1) as events,
        ):
            await events.in_effect()
            network.cut("B1", LocalClient("a"))
            cluster.drop(CHANNEL)
            cluster.create(CHANNEL)
            await ends(events)

    play(history)


def test_a_broker_that_cannot_reach_the_data_cluster_tells_it_later() -> None:
    async def history(cluster: MemoryCluster, network: MemoryNetwork) -> None:
        async with network.connect("B1") as a, a.subscribe_channel(CHANNEL, n=1) as events:
            await events.in_effect()
            cluster.is_away = True
            cluster.drop(CHANNEL)
            cluster.create(CHANNEL)
            await asyncio.sleep(0.1)
            cluster.is_away = False
            await ends(events)

    play(history)


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_request_that_crosses_the_drop(
    is_created_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data cluster has granted it; the answer is slower than the notice of the drop."""
    real, answered, may_answer = MemoryCluster.subscribe, asyncio.Event(), asyncio.Event()

    async def slowly(cluster: MemoryCluster, request: Subscribe) -> Subscribed:
        answer = await real(cluster, request)
        answered.set()
        await may_answer.wait()
        return answer

    async def history(cluster: MemoryCluster, network: MemoryNetwork) -> None:
        async with network.connect("B1") as a, a.subscribe_channel(CHANNEL, n=1) as events:
            await answered.wait()
            cluster.drop(CHANNEL)
            if is_created_again:
                cluster.create(CHANNEL)
            channels = network.nodes["B1"].channels
            assert channels is not None
            await until(lambda: channels._heard == cluster._number)
            may_answer.set()
            with pytest.raises(RefusedError, match=WHY):
                await events.in_effect()
            with pytest.raises(RefusedError, match=WHY):
                await anext(events)
            async with a.subscribe_channel(CHANNEL, n=1) as again:
                if is_created_again:
                    await again.in_effect()
                else:
                    with pytest.raises(RefusedError, match=WHY):
                        await again.in_effect()

    monkeypatch.setattr(MemoryCluster, "subscribe", slowly)
    play(history)


def test_over_http_it_is_in_ended() -> None:
    async def history(cluster: MemoryCluster, network: MemoryNetwork) -> None:
        async with asking(network) as broker:
            session = await broker.login()
            id = await broker.subscribe(session)
            waiting = asyncio.create_task(broker.results(session, wait_s=60))
            await until(lambda: broker.gateway._sessions[session].poll is not None)
            cluster.drop(CHANNEL)
            assert (await waiting).ended == {id: WHY}
            with pytest.raises(RestError, match=WHY) as refused:
                await broker.subscribe(session)
            assert refused.value.status == 400

    play(history)


def test_over_http_a_drop_between_two_requests_does_not_wait() -> None:
    async def history(cluster: MemoryCluster, network: MemoryNetwork) -> None:
        async with asking(network) as broker:
            session = await broker.login()
            id = await broker.subscribe(session)
            cluster.drop(CHANNEL)
            await until(lambda: broker.channels.desk.front_ends == 0)
            answer = asyncio.create_task(broker.results(session, wait_s=60))
            assert (await answer).ended == {id: WHY}  # Within the time of this test.
            assert (await broker.results(session, wait_s=1)).ended == {id: WHY}

    play(history)


def test_over_http_a_position_of_the_dropped_channel_is_refused() -> None:
    async def history(cluster: MemoryCluster, network: MemoryNetwork) -> None:
        async with asking(network) as broker:
            session = await broker.login()
            id = await broker.subscribe(session)
            one_row(cluster)
            positions = (await broker.results(session)).positions
            session = await broker.login()  # Another session: the first one is over.
            cluster.drop(CHANNEL)
            cluster.create(CHANNEL)
            with pytest.raises(RestError, match=WHY):
                await broker.subscribe(session, start=positions[ChannelSubscriptionId(id)])
            await broker.subscribe(session, start=(0, 0))  # From its beginning.

    play(history)


# -- the desk alone --------------------------------------------------------------------------------


def asked(desk: SharedSubscriptions, id: str, *, start: tuple[int, int] | None = None) -> Ask:
    request = ChannelSubscription(
        id=ChannelSubscriptionId(id), channel=CHANNEL, arguments={}, start=start
    )
    (ask,) = desk.subscribe(id[0], request)
    assert isinstance(ask, Ask)
    return ask


def refusal(id: str) -> Tell:
    return Tell(id[0], Refusal(about=id, reason=WHY))


def test_a_late_notice_does_not_end_subscriptions_to_the_next_channel() -> None:
    desk = SharedSubscriptions()
    ask = asked(desk, "a/c1")
    desk.granted(ask.key, Granted(id=8, start=(5, 0), first=(5, 0)))
    assert desk.channel_dropped(ChannelDropped(number=1, channel=CHANNEL, through=7)) == []
    assert desk.channel_dropped(ChannelDropped(number=2, channel="Other", through=9)) == []
    dropped = ChannelDropped(number=3, channel=CHANNEL.upper(), through=8)
    end, told = desk.channel_dropped(dropped)
    assert end == End(8, may_come_back=False)
    assert told == Tell("a", Refusal(about="a/c1", reason=f"channel {CHANNEL.upper()} was dropped"))


def test_of_those_that_share_a_subscription_only_those_of_the_old_channel_end() -> None:
    desk = SharedSubscriptions()
    ask = asked(desk, "a/c1", start=(3, 1))
    joined = ChannelSubscription(id=ChannelSubscriptionId("b/c1"), channel=CHANNEL, arguments={})
    assert desk.subscribe("b", joined) == []
    told = desk.granted(ask.key, Granted(id=8, start=(6, 0), first=(5, 0)))
    assert told[0] == refusal("a/c1")
    assert isinstance(told[1], Tell)
    assert told[1].client == "b"
    late = ChannelSubscription(
        id=ChannelSubscriptionId("c/c1"), channel=CHANNEL, arguments={}, start=(4, 0)
    )
    assert desk.subscribe("c", late) == [refusal("c/c1")]
    assert (desk.front_ends, desk.back_ends) == (1, 1)


def test_if_all_were_of_the_old_channel_the_new_subscription_is_given_back() -> None:
    desk = SharedSubscriptions()
    ask = asked(desk, "a/c1", start=(3, 1))
    told = desk.granted(ask.key, Granted(id=8, start=(6, 0), first=(5, 0)))
    assert told == [End(8, may_come_back=False), refusal("a/c1")]
    assert (desk.front_ends, desk.back_ends) == (0, 0)
