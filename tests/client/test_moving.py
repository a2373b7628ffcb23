"""A client that moves, in memory: without failures, and when brokers and connections fail."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import nullcontext
from typing import NamedTuple

import pytest
from tests.asynchronous import run, until
from tests.client.stages import Stage, stage
from tests.runtime.scenes import cut, line_of, port_of, publishing, subscribed

from godwit.client import live_move
from godwit.client.broker_connection import BrokerPlace
from godwit.content.messages import Advertisement, AdvertisementInEffect, Pause, Subscription, Sweep
from godwit.errors import StayedError, UnreachableError, UsageError
from godwit.migration.move import Phase
from godwit.overlay.topology import chain
from godwit.protocol.connection import Connection
from godwit.protocol.frames import Dropped, encode
from godwit.runtime.settings import Limits
from godwit.testing.memory_network import MemoryNetwork


class Stop(NamedTuple):
    """Where a move can be stopped: messages of a kind are delayed at a broker."""

    phase: Phase
    broker: str
    kind: type


STOPS = {
    "while the new broker has no subscription": Stop(Phase.SUBSCRIBING, "B3", Subscription),
    "while its subscriptions travel": Stop(Phase.SUBSCRIBING, "B2", Subscription),
    "before the sweep": Stop(Phase.SWEEPING, "B3", Sweep),
    "while the sweep travels": Stop(Phase.SWEEPING, "B1", Sweep),
    "before the pause": Stop(Phase.PAUSING, "B1", Pause),
    "while the new broker has no advertisement": Stop(Phase.TURNING, "B3", Advertisement),
    "while its advertisement travels": Stop(Phase.TURNING, "B2", Advertisement),
    "while the old broker still has it": Stop(Phase.TURNING, "B1", Advertisement),
    "when all have turned": Stop(Phase.TURNING, "B3", AdvertisementInEffect),
}
stops = pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)


async def stopped(scene: Stage, stop: Stop, *, within_s: float = 5.0) -> asyncio.Task[object]:
    """A move that has stopped there."""
    moving = asyncio.create_task(_move(scene, within_s))
    await until(lambda: scene.phase is stop.phase)
    await asyncio.sleep(0.02)
    assert not moving.done()
    return moving


async def _move(scene: Stage, within_s: float) -> object:
    return await scene.paul.move(scene.network.url("B3"), within_s=within_s)


# -- in good order ---------------------------------------------------------------------------------


def test_a_publisher_does_not_turn_before_all_it_published_is_acknowledged() -> None:
    """After a failure it would be sent again, behind publications from the new broker."""

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2)) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B2", "alice") as (alice, events),
        ):
            line_of(alice).pause_reading()
            await paul.publish({"x": 1})
            moving = asyncio.create_task(paul.move(network.url("B2")))
            await until(lambda: paul.move_phase is Phase.PAUSING)
            await asyncio.sleep(0.1)
            assert paul.move_phase is Phase.PAUSING
            line_of(alice).resume_reading()
            await moving
            assert (await anext(events)).content["x"] == 1

    run(scenario())


def test_a_client_moves_and_nobody_notices() -> None:
    async def scenario() -> None:
        async with stage() as scene:
            for target in ("B3", "B2", "B1", "B3"):
                source = scene.paul.session.broker
                moved = await scene.paul.move(scene.network.url(target))
                assert (moved.source, moved.target) == (source, target)
                assert 0 < moved.pause_s < moved.took_s < 5
                assert scene.paul.session.broker == target
            await scene.everything_arrives()
            await scene.settles("B3")
            assert scene.paul.restarts == 0

    run(scenario())


def test_what_is_asked_for_during_a_move_takes_effect_after_it() -> None:
    stop = STOPS["before the pause"]

    async def scenario() -> None:
        async with stage() as scene:
            paul, b3 = scene.paul, scene.network.nodes["B3"].broker.routing
            early = await paul.advertise("z is a number")
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop)
                advertising = asyncio.create_task(paul.advertise("w is a number"))
                async with paul.subscribe("v is a number") as more:
                    await paul.unadvertise(early)
                    await asyncio.sleep(0.05)
                    assert not advertising.done()
                    assert early in b3.tables().advertisements
                    assert not any(id in b3.tables().subscriptions for id in more.ids)
                await paul.subscribe("u is a number").__aenter__()
            await moving
            late = await advertising
            await until(lambda: early not in b3.tables().advertisements)
            assert b3.tables().advertisements[late].name == "paul"
            wants = [id for id in b3.tables().subscriptions if id.startswith("paul/")]
            assert len(wants) == 2, "the one that was left is not there"
            await paul.publish({"w": 1})
            await scene.everything_arrives()

    run(scenario())


def test_a_subscription_that_is_left_during_a_move_is_left_at_the_new_broker() -> None:
    stop = STOPS["before the sweep"]

    async def scenario() -> None:
        async with stage() as scene:
            async with scene.paul.subscribe("v is a number") as events:
                await events.in_effect()
                with scene.held_up(stop.broker, stop.kind):
                    moving = await stopped(scene, stop)
                    await events.__aexit__(None, None, None)
            await moving
            await scene.everything_arrives()
            await scene.settles("B3")

    run(scenario())


def test_a_subscription_that_is_not_in_effect_yet_moves_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with stage() as scene:
            paul, b1 = scene.paul, scene.network.nodes["B1"]
            routing = b1.broker.routing
            handle = routing.handle
            never = lambda m, hop: [] if isinstance(m, Subscription) else handle(m, hop)
            monkeypatch.setattr(routing, "handle", never)
            async with paul.subscribe("v is a number") as events:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(events.in_effect(), 0.05)
                await paul.move(scene.network.url("B3"))
                await events.in_effect()
            await scene.everything_arrives()

    run(scenario())


def test_moves_follow_each_other() -> None:
    async def scenario() -> None:
        async with stage() as scene:
            paul, network = scene.paul, scene.network
            targets = ("B2", "B3", "B1", "B3")
            moves = [asyncio.create_task(paul.move(network.url(to))) for to in targets]
            assert [(await move).target for move in moves] == list(targets)
            assert (await paul.move(network.url("B3"))).took_s == 0.0, "it is there"
            await scene.everything_arrives()
            await scene.settles("B3")

    run(scenario())


def test_who_does_not_wait_for_a_move_does_not_stop_it() -> None:
    async def scenario() -> None:
        async with stage() as scene:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(scene.paul.move(scene.network.url("B3")), 0.001)
            await until(lambda: scene.paul.session.broker == "B3")
            await scene.everything_arrives()

    run(scenario())


@stops
def test_a_client_that_is_closed_on_the_way_leaves_nothing_behind(stop: Stop) -> None:
    async def scenario() -> None:
        async with stage() as scene:
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop)
                await scene.stop_talking()
                scene.paul._connect_s = 0.05  # Its publications are not acknowledged.
                may_fail = stop.phase in (Phase.PAUSING, Phase.TURNING)
                with contextlib.suppress(UnreachableError) if may_fail else nullcontext():
                    await scene.paul.close()
            with pytest.raises((UsageError, asyncio.CancelledError)):
                await moving
            brokers = [node.broker.routing for node in scene.network.nodes.values()]
            await until(lambda: not any("paul/" in repr(b.tables()) for b in brokers))

    run(scenario())


# -- connections that are lost ---------------------------------------------------------------------


@stops
@pytest.mark.parametrize("whose", ["B1", "B3", "both"])
def test_a_connection_that_is_lost_on_the_way_is_resumed_and_so_is_the_move(
    stop: Stop, whose: str
) -> None:
    async def scenario() -> None:
        async with stage() as scene:
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop)
                for broker in ("B1", "B3") if whose == "both" else (whose,):
                    cut(port_of(scene.network, broker, "paul").connection)
                await asyncio.sleep(0.02)
            await moving
            await scene.everything_arrives()
            await scene.settles("B3")

    run(scenario())


# -- moves that take too long ----------------------------------------------------------------------


@stops
def test_a_client_that_is_not_there_in_time_stays(stop: Stop) -> None:
    async def scenario() -> None:
        async with stage() as scene:
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop, within_s=0.3)
                await asyncio.sleep(0.4)
            with pytest.raises(StayedError, match=r"paul stayed at B1: not moved within 0\.3 s"):
                await moving
            assert scene.paul.session.broker == "B1"
            await asyncio.sleep(0.1)
            assert scene.paul.restarts == 0
            await scene.settles("B1")
            await scene.paul.move(scene.network.url("B3"))
            await scene.everything_arrives()
            await scene.settles("B3")

    run(scenario())


def test_a_target_that_is_not_there_or_refuses_changes_nothing() -> None:
    async def scenario() -> None:
        async with stage() as scene:
            network, paul = scene.network, scene.paul
            with pytest.raises(UsageError, match="there is no broker 'B7'"):
                await paul.move(network.url("B7"))
            network.nodes["B3"].is_stopping = True
            with pytest.raises(StayedError, match="refused: broker B3 is stopping"):
                await paul.move(network.url("B3"))
            network.crash("B3")
            with pytest.raises(StayedError, match="no broker at memory://B3: broker B3 is not"):
                await paul.move(network.url("B3"), within_s=0.2)
            await scene.everything_arrives()
            await scene.settles("B1")

    run(scenario())


# -- brokers that are lost -------------------------------------------------------------------------


@stops
def test_a_target_that_crashes_on_the_way_is_not_moved_to(stop: Stop) -> None:
    async def scenario() -> None:
        async with stage() as scene:
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop, within_s=0.3)
                scene.network.crash("B3")
                await asyncio.sleep(0.1)
            with pytest.raises(StayedError):
                await moving
            assert scene.paul.restarts == 0
            await scene.everything_arrives()
            await scene.settles("B1")

    run(scenario())


@stops
def test_a_target_that_crashes_and_is_back_has_forgotten_us(stop: Stop) -> None:
    async def scenario() -> None:
        async with stage() as scene:
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop, within_s=2.0)
                scene.network.crash("B3")
                await scene.network.restart("B3")
                await asyncio.sleep(0.3)
            why = "B3 has forgotten the client"
            if stop is STOPS["while the new broker has no subscription"]:
                why = "still waiting for the sweep"  # All is sent again; B3 discards the sweep.
            with pytest.raises(StayedError, match=why):
                await moving
            assert scene.paul.restarts == 0
            await scene.everything_arrives()
            await scene.settles(scene.paul.session.broker)

    run(scenario())


@stops
def test_a_source_that_crashes_for_ever_is_left(stop: Stop) -> None:
    """Publications on their way to the client there are lost with the broker."""

    async def scenario() -> None:
        async with stage(fall_back_s=0.3) as scene:
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop, within_s=1.0)
                scene.network.crash("B1")
                await asyncio.sleep(0.1)
            await asyncio.wait([moving])
            await until(lambda: scene.paul.session.broker == "B3")
            await scene.settles("B3")
            await scene.everything_arrives(since=scene.said)

    run(scenario())


@stops
def test_a_source_that_crashes_and_is_back_loses_nothing(stop: Stop) -> None:
    async def scenario() -> None:
        async with stage() as scene:
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop, within_s=1.0)
                scene.network.crash("B1")
                await scene.network.restart("B1")
                await asyncio.sleep(0.1)
            await asyncio.wait([moving])
            home = "B3" if stop.phase is Phase.TURNING else "B1"
            assert scene.paul.session.broker == home
            assert scene.paul.restarts == (home == "B1")
            await scene.settles(home)
            await scene.everything_arrives()

    run(scenario())


# -- after a move ----------------------------------------------------------------------------------


def test_a_client_whose_new_broker_is_gone_for_long_goes_back_to_where_it_was() -> None:
    async def scenario() -> None:
        async with stage(fall_back_s=0.3) as scene:
            await scene.paul.move(scene.network.url("B3"))
            scene.network.crash("B3")
            await until(lambda: scene.paul.session.broker == "B1")
            assert scene.paul.restarts == 1
            await scene.settles("B1")
            await scene.everything_arrives(since=scene.said)

    run(scenario())


def test_a_client_whose_new_broker_is_back_in_time_stays_there() -> None:
    async def scenario() -> None:
        async with stage(fall_back_s=5.0) as scene:
            await scene.paul.move(scene.network.url("B3"))
            scene.network.crash("B3")
            await scene.network.restart("B3")
            await until(lambda: scene.paul.restarts == 1)
            assert scene.paul.session.broker == "B3"
            await scene.settles("B3")
            await scene.everything_arrives(since=scene.said)

    run(scenario())


def test_the_former_broker_hears_that_we_have_left_even_if_it_was_away() -> None:
    """Otherwise it would keep the subscriptions until the session expires."""

    async def scenario() -> None:
        async with stage(Limits(session_s=60.0)) as scene:
            network, stop = scene.network, STOPS["when all have turned"]
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop)
                opener = network._opener
                scene.paul.broker_connection.places[0] = BrokerPlace("memory://B1", _nobody)
                cut(port_of(network, "B1", "paul").connection)
            await moving
            await asyncio.sleep(0.1)
            (draining,) = scene.paul._mover._draining
            assert port_of(network, "B1", "paul"), "it does not know yet"
            draining.connection.places[0] = BrokerPlace("memory://B1", opener("B1"))
            await scene.settles("B3")
            await until(lambda: not scene.paul._mover._draining)
            await scene.everything_arrives()

    run(scenario())


async def _nobody(_connection: Connection) -> None:
    raise ConnectionRefusedError("nobody is there")


# -- a new broker that has too much for us ---------------------------------------------------------


def test_a_new_broker_that_dropped_something_is_not_moved_to() -> None:
    stop = STOPS["before the sweep"]

    async def scenario() -> None:
        async with stage() as scene:
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop)
                port = port_of(scene.network, "B3", "paul")
                port.put(encode(Dropped(count=3)))
                port.flush()
                with pytest.raises(StayedError, match="the new broker dropped publications"):
                    await moving
            await scene.everything_arrives()
            await scene.settles("B1")

    run(scenario())


def test_what_waits_for_the_sweep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new broker receives no acknowledgement, and holds its publishers back."""
    monkeypatch.setattr(live_move, "EVENTS_WAITING_MAX", 5)
    stop = STOPS["before the sweep"]

    async def scenario() -> None:
        async with stage() as scene:
            with scene.held_up(stop.broker, stop.kind):
                moving = await stopped(scene, stop)
                stream = port_of(scene.network, "B3", "paul").stream
                await until(lambda: scene.waiting > 5)
                acknowledged = stream.acknowledged
                await asyncio.sleep(0.1)
                assert stream.acknowledged == acknowledged
            await moving
            await until(lambda: stream.acknowledged > acknowledged)
            await scene.everything_arrives()

    run(scenario())
