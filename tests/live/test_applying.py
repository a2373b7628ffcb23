"""`godwit network apply`: a coordinator gives a running network another tree, under load."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import msgspec
import pytest
from tests.asynchronous import run
from tests.live.changing import ChangingNetwork, changing
from typer.testing import CliRunner

from godwit.api.network_api import (
    BrokerAccount,
    ChangeKind,
    ChangeState,
    NetworkBroker,
    NetworkLink,
    NetworkView,
)
from godwit.cli import app
from godwit.cli.applying import links_of
from godwit.cli.network_plan import differences, plan_lines
from godwit.errors import UsageError
from godwit.http.errors import RestError
from godwit.overlay.topology import star

BROKERS = ("B1", "B2", "B3", "B4")
CHAIN = [("B2", "B1"), ("B1", "B4"), ("B4", "B3")]


async def neighbours(network: ChangingNetwork) -> dict[str, list[str]]:
    accounts = {broker: await network.account(broker) for broker in BROKERS}
    return {
        broker: sorted(link.neighbour for link in account.links if link.status == "up")
        for broker, account in accounts.items()
    }


async def cast(network: ChangingNetwork) -> None:
    for broker in BROKERS:
        await network.publisher(broker)
        await network.subscribers(2, broker)


def test_another_tree_under_load_and_the_coordinator_is_killed_meanwhile(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, star(3)) as network:
            await cast(network)
            pids = {broker: network.running.pid(broker) for broker in BROKERS}
            async with network.publishing():
                with pytest.raises(RestError, match="leave out B4"):
                    await network.begin(ChangeKind.RESHAPE, "B1", "B2", "B3", links=CHAIN[:1])
                change = await network.carry_out(ChangeKind.RESHAPE, *BROKERS, links=CHAIN)
                assert change.state is ChangeState.DONE, change
                assert change.steps[0].says == "4 brokers use epoch 1"
                expected = {"B1": ["B2", "B4"], "B2": ["B1"], "B3": ["B4"], "B4": ["B1", "B3"]}
                assert await neighbours(network) == expected

                back = [("B3", other) for other in ("B1", "B2", "B4")]
                begun = await network.begin(ChangeKind.RESHAPE, *BROKERS, links=back)
                await network.coordinator.end(signal.SIGKILL)
                await asyncio.sleep(0.3)
                await network.coordinator.start()
                ended = await network.ended(await network.change(begun.number))
                assert ended.state is ChangeState.DONE, ended
                assert (await neighbours(network))["B3"] == ["B1", "B2", "B4"]
            assert pids == {broker: network.running.pid(broker) for broker in BROKERS}

    run(scenario(), within_s=180.0)


def test_brokers_are_restarted_and_leave_in_the_new_tree(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, star(3)) as network:
            await cast(network)
            async with network.publishing():
                change = await network.carry_out(ChangeKind.RESHAPE, *BROKERS, links=CHAIN)
                assert change.state is ChangeState.DONE, change
                restarted = await network.carry_out(ChangeKind.RESTART, "B4")
                assert restarted.state is ChangeState.DONE, restarted
                assert (await neighbours(network))["B4"] == ["B1", "B3"]
                left = await network.carry_out(ChangeKind.LEAVE, "B3")
                assert left.state is ChangeState.DONE, left
                assert network.at("B3") == []

    run(scenario(), within_s=180.0)


def test_the_command_applies_a_plan_and_a_network_file(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"algorithm": "fbf", "links": [["B3", "B1"]], "root": "B3"}))

    async def scenario() -> None:
        async with changing(tmp_path, star(3)) as network:
            await cast(network)
            async with network.publishing():
                where = ("--at", network.coordinator.url)
                apply = ("network", "apply", str(plan))
                dry = await asyncio.to_thread(invoke, *apply, *where, "--dry-run")
                assert "reshape" in dry
                told = await asyncio.to_thread(invoke, "network", "plan", str(plan), *where)
                for words in ("B2 - B3 comes", "B1 - B4 goes", "1 links stay", "no client moves"):
                    assert words in told
                assert (await neighbours(network))["B1"] == ["B2", "B3", "B4"]
                await asyncio.to_thread(invoke, *apply, *where)
                assert (await neighbours(network))["B3"] == ["B1", "B2", "B4"]

    run(scenario(), within_s=180.0)


def test_a_tree_becomes_clusters_and_a_mesh_and_a_tree_again_under_load(tmp_path: Path) -> None:
    """Processes run on, publishers do not stop, and the oracle watches."""
    files = {kind: tmp_path / f"{kind}.toml" for kind in ("clusters", "mesh", "tree")}
    files["clusters"].write_text(
        invoke("topology", "clusters", "--brokers", "4", "--clusters", "2"), "utf-8"
    )
    files["mesh"].write_text(
        invoke("topology", "mesh", "--brokers", "4", "--fanout", "1", "--delta", "3"), "utf-8"
    )
    files["tree"].write_text(invoke("topology", "star", "--brokers", "4"), "utf-8")
    expected = {
        "clusters": {"B1": ["B2", "B3"], "B2": ["B1", "B4"], "B3": ["B1", "B4"]},
        "mesh": {"B1": ["B2"], "B2": ["B1", "B3"], "B3": ["B2", "B4"]},
        "tree": {"B1": ["B2", "B3", "B4"], "B2": ["B1"], "B3": ["B1"]},
    }

    async def scenario() -> None:
        async with changing(tmp_path, star(3)) as network:
            await cast(network)
            pids = {broker: network.running.pid(broker) for broker in BROKERS}
            where = ("--at", network.coordinator.url)
            async with network.publishing():
                for kind in ("clusters", "mesh", "clusters", "tree", "mesh", "tree"):
                    told = await asyncio.to_thread(
                        invoke, "network", "plan", str(files[kind]), *where
                    )
                    assert "do it: godwit network apply" in told, told
                    await asyncio.to_thread(invoke, "network", "apply", str(files[kind]), *where)
                    found = await neighbours(network)
                    assert expected[kind].items() <= found.items(), (kind, found)
                await asyncio.to_thread(invoke, "network", "apply", str(files["mesh"]), *where)
                relink = ("network", "relink", "B4", "--from", "B3", "--to", "B1")
                await asyncio.to_thread(invoke, *relink, *where)
                found = await neighbours(network)
                assert found == {"B1": ["B2", "B4"], "B2": ["B1", "B3"], "B3": ["B2"], "B4": ["B1"]}
            assert pids == {broker: network.running.pid(broker) for broker in BROKERS}

    run(scenario(), within_s=240.0)


def test_what_a_file_would_change() -> None:
    account = {"start": "s", "pid": 1, "started_s": 0.0, "url": "godwit://h:1"}
    there = [
        NetworkBroker(broker=name, state="serving", account=BrokerAccount(broker=name, **account))  # type: ignore[arg-type]
        for name in ("B1", "B2", "B3")
    ]
    links = [NetworkLink("B1", "B2", "up"), NetworkLink("B2", "B3", "up")]
    found = differences(
        NetworkView(brokers=there, links=links), ["B1", "B2", "B4"], [("B2", "B1"), ("B4", "B1")]
    )
    assert (found.stopped, found.others) == (["B4"], ["B3"])
    assert found.links_come == [("B1", "B4")]
    assert found.links_go == [("B2", "B3")]
    assert found.links_stay == [("B1", "B2")]
    lines = "\n".join(plan_lines(msgspec.structs.replace(found, refusal="no"), Path("net.toml")))
    for words in ("B4 is in the file and does not run", "B3 runs and is not", "refused: no"):
        assert words in lines


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_brokers_that_a_plan_does_not_need_are_leaves_of_its_root(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"links": [["B3", "B1"]], "root": "B3", "algorithm": "cram-iou"}')
    assert links_of(plan, BROKERS) == [("B3", "B1"), ("B3", "B2"), ("B3", "B4")]


def test_a_network_file_has_the_links_of_its_brokers(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text(
        '[[broker]]\nid = "B1"\nlisten = "127.0.0.1:7400"\n'
        '[[broker]]\nid = "B2"\nlisten = "127.0.0.1:7401"\nlinks = ["B1"]\n'
    )
    assert links_of(file, ["B1", "B2"]) == [("B1", "B2")]


@pytest.mark.parametrize(
    ("text", "error"),
    [("{}", "is not a plan"), ("oh", "is not a plan"), (None, "No such file")],
    ids=["no links", "no JSON", "no file"],
)
def test_what_is_not_a_plan_is_refused(tmp_path: Path, text: str | None, error: str) -> None:
    plan = tmp_path / "plan.json"
    if text is not None:
        plan.write_text(text)
    with pytest.raises(UsageError, match=error):
        links_of(plan, BROKERS)
