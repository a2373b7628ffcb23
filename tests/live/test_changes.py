"""A network that is changed while clients publish: nothing is lost, twice, or out of order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

import msgspec
import pytest
from tests.asynchronous import run
from tests.live.changing import ChangingNetwork, changing
from tests.live.coordinating import CoordinatorProcess, registrations
from tests.live.watching import until

import godwit
from godwit.api import coordinator_api, network_api
from godwit.api.network_api import ChangeKind, ChangeState
from godwit.errors import RefusedError
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.overlay.topology import chain, star
from godwit.runtime.settings import BrokerSettings, NetworkSettings

#: Clients of the broker that is changed.
MANY = 30


async def cast(network: ChangingNetwork, broker: str) -> None:
    """Subscribers and a publisher at the broker that changes, a publisher elsewhere."""
    await network.publisher("B1")
    await network.publisher(broker)
    await network.subscribers(MANY, broker)
    await network.subscribers(4, "B1")


def health(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=10) as answer:  # noqa: S310  Ours.
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_broker_is_drained_and_undrained(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path) as network:
            await cast(network, "B2")
            before = network.at("B2")
            async with network.publishing():
                proposed = await network.begin(ChangeKind.DRAIN, "B2", dry_run=True)
                assert proposed.state is ChangeState.PROPOSED
                assert sorted(proposed.steps[0].went) == before
                assert proposed.expected["B2"].clients == 0
                assert network.at("B2") == before, "a dry run moves no client"

                change = await network.carry_out(ChangeKind.DRAIN, "B2", reason="new disk")
                assert change.state is ChangeState.DONE, change
                assert change.steps[0].moved == len(before) == MANY + 1
                assert network.at("B2") == []
                clients = {name: load.clients for name, load in change.after.items()}
                assert clients == {n: load.clients for n, load in change.expected.items()}
                assert clients["B2"] == 0

                code, text = await asyncio.to_thread(health, network.running.http("B2"))
                assert code == 503
                assert "being drained: change 1, drain B2: new disk" in text
                with pytest.raises(RefusedError, match="is being drained"):
                    async with godwit.connect(network.running.url("B2"), name="late"):
                        pass
                request = coordinator_api.RegisterUser("late")
                await network.caller.call(coordinator_api.REGISTER_USER, request)
                for _ in range(4):
                    assigned = await network.caller.call(
                        coordinator_api.REQUEST_BROKER, coordinator_api.RequestBroker("late")
                    )
                    assert assigned.broker != "B2"
                assert {b.broker: b.state for b in (await network.view()).brokers}["B2"] == (
                    "draining"
                )

                undrained = await network.carry_out(ChangeKind.UNDRAIN, "B2")
                assert undrained.state is ChangeState.DONE
                assert (await asyncio.to_thread(health, network.running.http("B2")))[0] == 200
                async with godwit.connect(network.running.url("B2"), name="early"):
                    pass

    run(scenario(), within_s=120.0)


def test_a_drain_is_taken_back_in_the_middle(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path) as network:
            await cast(network, "B2")
            async with network.publishing():
                change = await network.begin(ChangeKind.DRAIN, "B2", per_s=5.0)
                with pytest.raises(RestError, match=r"change 1 \(drain B2\) is running"):
                    await network.begin(ChangeKind.RESTART, "B3")
                await network.until_moved(change, 3)
                ended = await network.carry_out(ChangeKind.UNDRAIN, "B2")
                assert (ended.number, ended.state) == (change.number, ChangeState.TAKEN_BACK)
                assert 0 < len(network.at("B2")) < MANY + 1
                assert len(network.at("B2")) == MANY + 1 - ended.steps[0].moved
                assert not (await network.account("B2")).is_draining
                with pytest.raises(RestError, match="no change is under way"):
                    await network.abort()

    run(scenario(), within_s=120.0)


def test_the_coordinator_is_killed_in_the_middle_of_a_drain(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path) as network:
            await cast(network, "B2")
            async with network.publishing():
                change = await network.begin(ChangeKind.DRAIN, "B2", per_s=10.0)
                await network.until_moved(change, 5)
                await network.coordinator.end(signal.SIGKILL)
                left = len(network.at("B2"))
                assert left > 0
                await asyncio.sleep(0.5)
                await network.coordinator.start()
                ended = await network.ended(await network.change(change.number))
                assert ended.state is ChangeState.DONE, ended
                assert network.at("B2") == []
                authority = (await network.account("B2")).authority
                assert authority is not None
                assert (authority.number, authority.run) == (1, 2)

    run(scenario(), within_s=120.0)


def test_a_broker_that_is_killed_while_it_is_drained_is_drained_all_the_same(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with changing(tmp_path) as network:
            await cast(network, "B2")
            async with network.publishing(may_restart=True):  # Sessions die with it.
                change = await network.begin(ChangeKind.DRAIN, "B2", per_s=10.0)
                await network.until_moved(change, 5)
                os.kill(network.running.pid("B2"), signal.SIGKILL)
                ended = await network.ended(change)
                assert ended.state is ChangeState.DONE, ended
                assert network.at("B2") == []
                # Killed afterwards, it is drained again: the coordinator remembers.
                start = (await network.account("B2")).start
                os.kill(network.running.pid("B2"), signal.SIGKILL)

                async def is_drained_again() -> bool:
                    with contextlib.suppress(godwit.GodwitError):
                        account = await network.account("B2")
                        return account.start != start and account.is_draining
                    return False

                await until(is_drained_again, within_s=30.0)

    run(scenario(), within_s=120.0)


def test_a_second_coordinator_cannot_harm_and_can_take_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        second = CoordinatorProcess(tmp_path / "second", "--report-s", "1")
        async with changing(tmp_path) as network, second, HttpClient(second.url) as other:
            await cast(network, "B2")
            for request in registrations(network.running, {}):
                await other.call(coordinator_api.REGISTER_BROKER, request)
            async with network.publishing():
                change = await network.begin(ChangeKind.DRAIN, "B2", per_s=5.0)
                await network.until_moved(change, 3)
                drain = network_api.ChangeRequest(kind=ChangeKind.DRAIN, brokers=["B3"])
                with pytest.raises(RestError, match="brokers obey another coordinator") as refused:
                    await other.call(network_api.BEGIN_CHANGE, drain)
                assert refused.value.status == 409
                assert not (await network.account("B3")).is_draining

                over = msgspec.structs.replace(drain, take_over=True)
                taken = await other.call(network_api.BEGIN_CHANGE, over)
                ended = await network.ended(change)
                assert ended.state is ChangeState.FAILED, "its orders are refused now"
                assert "obeys authority" in ended.because
                while not taken.is_over:
                    await asyncio.sleep(0.1)
                    which = network_api.WhichChange(taken.number)
                    taken = await other.call(network_api.CHANGE, which)
                assert taken.state is ChangeState.DONE
                for _ in range(2):  # However often it starts, it is not in charge again.
                    await network.coordinator.end(signal.SIGKILL)
                    await network.coordinator.start()
                with pytest.raises(RestError, match="brokers obey another coordinator"):
                    await network.begin(ChangeKind.UNDRAIN, "B2")

    run(scenario(), within_s=120.0)


def test_a_client_that_cannot_be_moved_is_named_with_the_reason(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path) as network:
            await cast(network, "B2")
            stubborn = await network.enter("stubborn", "B2")
            # Busy with a move of its own, it answers that it stays.
            lock = stubborn.client._mover._one_at_a_time
            async with network.publishing(), lock:
                change = await network.carry_out(ChangeKind.LEAVE, "B2", give_up_s=3.0)
                assert change.state is ChangeState.INCOMPLETE
                assert change.steps[0].stayed == {"stubborn": "another move is under way"}
                assert "stubborn (another move is under way)" in change.because
                assert network.at("B2") == ["stubborn"]
                assert network.running.pid("B2"), "a broker with clients does not leave"
                assert (await network.account("B2")).is_draining

    run(scenario(), within_s=120.0)


@pytest.mark.parametrize(
    ("kind", "broker", "status", "says"),
    [
        (ChangeKind.DRAIN, "B9", 404, "there is no broker 'B9'; there are: B1, B2, B3"),
        (ChangeKind.LEAVE, "B2", 409, "broker B2 is not a leaf: it links B1, B3"),
        (ChangeKind.JOIN, "B3", 409, "there is a broker B3 already"),
    ],
)
def test_what_is_not_possible_is_refused_with_the_reason(
    tmp_path: Path, kind: ChangeKind, broker: str, status: int, says: str
) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, chain(3)) as network:
            with pytest.raises(RestError) as refused:
                await network.begin(kind, broker)
            assert refused.value.status == status
            assert says in str(refused.value)

    run(scenario(), within_s=60.0)


def called_by_b1(settings: NetworkSettings) -> NetworkSettings:
    """B1 dials B4: it must not go on with that when B4 has left."""
    links = {"B1": ["B4"], "B4": list[str]()}
    brokers = [
        msgspec.structs.replace(each, links=links.get(each.id, each.links))
        for each in settings.broker
    ]
    return msgspec.structs.replace(settings, broker=brokers)


def test_a_leaf_leaves_and_comes_back_at_another_address(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, star(3), change_settings=called_by_b1) as network:
            running = network.running
            await cast(network, "B4")
            pids = {broker: running.pid(broker) for broker in ("B1", "B2", "B3")}
            old = running.url("B4")
            async with network.publishing():
                change = await network.carry_out(ChangeKind.LEAVE, "B4")
                assert change.state is ChangeState.DONE, change
                assert {b.broker for b in (await network.view()).brokers} == {"B1", "B2", "B3"}
                for broker in pids:
                    code, text = await asyncio.to_thread(health, running.http(broker))
                    assert code == 200, text

                async def is_gone() -> bool:
                    return "B4" not in running.network.topology.brokers

                await until(is_gone)
                joining = await network.begin(ChangeKind.JOIN, "B4", link="B2")
                await running.join(BrokerSettings(id="B4", links=["B2"], http="127.0.0.1:0"))
                joined = await network.ended(joining)
                assert joined.state is ChangeState.DONE, joined
                assert running.url("B4") != old
                links = [(link.one, link.other) for link in (await network.view()).links]
                assert ("B2", "B4") in links
                assert ("B1", "B4") not in links
                moved = await network.carry_out(ChangeKind.DRAIN, "B1", to=["B4"])
                assert moved.state is ChangeState.DONE, moved
                assert len(network.at("B4")) == moved.steps[0].moved > 0
            assert {broker: running.pid(broker) for broker in pids} == pids
            assert not any(each.client.gaps.seen for each in network.clients)

    run(scenario(), within_s=120.0)


def test_all_brokers_are_restarted_one_after_the_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, star(2)) as network:
            for broker in ("B1", "B2", "B3"):
                await network.publisher(broker)
                await network.subscribers(6, broker)
            before = {broker: network.at(broker) for broker in ("B1", "B2", "B3")}
            pids = [network.running.pid(broker) for broker in before]
            async with network.publishing():
                change = await network.carry_out(ChangeKind.RESTART, "B1", "B2", "B3")
                assert change.state is ChangeState.DONE, change
                assert change.because == ""
            assert not set(pids) & {network.running.pid(broker) for broker in before}
            assert {broker: network.at(broker) for broker in before} == before

    run(scenario(), within_s=240.0)


def test_the_coordinator_is_killed_in_the_middle_of_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with changing(tmp_path) as network:
            await cast(network, "B2")
            async with network.publishing(may_restart=True):
                change = await network.begin(ChangeKind.RESTART, "B2", drains=False)
                while not change.steps[0].start:
                    await asyncio.sleep(0.01)
                    change = await network.change(change.number)
                await network.coordinator.end(signal.SIGKILL)
                await network.coordinator.start()
                ended = await network.ended(await network.change(change.number))
                assert ended.state is ChangeState.DONE, ended
                assert (await network.account("B2")).start != change.steps[0].start
            restarts = [r for r in caplog.records if r.getMessage() == "restarting"]
            assert len(restarts) == 1, "the order is for one run of the broker"

    run(scenario(), within_s=120.0)


def test_a_restart_stops_when_a_broker_does_not_come_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path) as network:
            network.running.start = _never  # type: ignore[method-assign,assignment]
            change = await network.carry_out(
                ChangeKind.RESTART, "B2", "B3", drains=False, within_s=3.0
            )
            assert change.state is ChangeState.FAILED
            assert "broker B2 has not come back within 3 s" in change.because
            assert [step.state.value for step in change.steps] == ["running", "waiting"]
            assert network.running.pid("B3")

    run(scenario(), within_s=60.0)


def short(settings: NetworkSettings) -> NetworkSettings:
    limits = msgspec.structs.replace(settings.limits, link_s=0.2)
    return msgspec.structs.replace(settings, limits=limits)


def test_a_restart_stops_when_a_broker_was_away_for_too_long(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, change_settings=short) as network:
            change = await network.carry_out(ChangeKind.RESTART, "B2", "B3", drains=False)
            assert change.state is ChangeState.FAILED
            assert "longer than `link_s` (0.2 s)" in change.because
            assert [step.state.value for step in change.steps] == ["running", "waiting"]

    run(scenario(), within_s=60.0)


async def _never(_broker: str) -> None:
    await asyncio.Event().wait()
