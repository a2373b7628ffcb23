"""`godwit croc apply`: a plan carried out on broker processes under load, down and up again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.asynchronous import run
from tests.live.changing import ChangingNetwork, changing
from tests.live.watching import until
from typer.testing import CliRunner

from godwit.api.network_api import ChangeKind, ChangeState
from godwit.cli import app
from godwit.overlay.topology import star

BROKERS = ("B1", "B2", "B3", "B4", "B5")


def plan(folder: Path, root: str, links: list[tuple[str, str]], clients: dict[str, str]) -> Path:
    """A file in the form of `godwit croc plan --output`."""
    used = {root, *(end for link in links for end in link)}
    brokers = [{"id": broker, "output_bytes_s": 1_000.0} for broker in sorted(used)]
    file = folder / f"plan-{len(used)}.json"
    found = {"links": links, "root": root, "clients": clients, "brokers": brokers}
    file.write_text(json.dumps(found))
    return file


async def croc(network: ChangingNetwork, *words: str) -> str:
    arguments = ["croc", "apply", *words, "--at", network.coordinator.url, "--per-s", "50"]
    result = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert result.exit_code == 0, result.output
    return result.output


async def neighbours(network: ChangingNetwork, *brokers: str) -> dict[str, list[str]]:
    accounts = {broker: await network.account(broker) for broker in brokers}
    return {
        broker: sorted(link.neighbour for link in account.links if link.status == "up")
        for broker, account in accounts.items()
    }


def test_a_plan_is_carried_out_down_to_two_brokers_and_up_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, star(4)) as network:
            await network.publisher("B1")
            await network.publisher("B3")
            for broker in BROKERS[1:]:
                await network.subscribers(2, broker)
            names = sorted(each.name for each in network.clients)
            async with network.publishing(may_restart=True):
                await _down(network, tmp_path, names)
                await _up(network, tmp_path, names)

    run(scenario(), within_s=240.0)


async def _down(network: ChangingNetwork, folder: Path, names: list[str]) -> None:
    pids = {broker: network.running.pid(broker) for broker in ("B2", "B4")}
    clients = {name: ("B2", "B4")[number % 2] for number, name in enumerate(names)}
    clients["not-there"] = "B2"
    file = str(plan(folder, "B2", [("B4", "B2")], clients))
    dry = await croc(network, file, "--dry-run")
    assert "clients would move to B4" in dry
    assert len(network.at("B5")) == 2, "nothing was done"
    text = await croc(network, file)
    for words in ("reshape the network: done", "leave B5: done", "clients before", "expected"):
        assert words in text
    del clients["not-there"]
    assert {name: broker for broker in BROKERS for name in network.at(broker)} == clients
    assert await neighbours(network, "B2", "B4") == {"B2": ["B4"], "B4": ["B2"]}
    assert pids == {broker: network.running.pid(broker) for broker in pids}
    assert [each.broker for each in (await network.view()).brokers] == ["B2", "B4"]
    restarted = await network.carry_out(ChangeKind.RESTART, "B4", drains=False)
    assert restarted.state is ChangeState.DONE, restarted
    assert await neighbours(network, "B2", "B4") == {"B2": ["B4"], "B4": ["B2"]}, "it was told"


async def _up(network: ChangingNetwork, folder: Path, names: list[str]) -> None:
    links = [("B1", "B4"), ("B2", "B1"), ("B5", "B1")]
    used = ("B1", "B2", "B4", "B5")
    clients = {name: used[number % 4] for number, name in enumerate(names)}
    file = str(plan(folder, "B4", links, clients))

    async def is_startable() -> bool:
        offered = await network.begin(
            ChangeKind.ALLOCATE, *used, link="B4", links=links, dry_run=True
        )
        return offered.steps[0].broker == "B1"

    await until(is_startable)
    text = await croc(network, file)
    for words in ("start B1: done", "start B5: done", "reshape the network: done"):
        assert words in text
    assert {name: broker for broker in BROKERS for name in network.at(broker)} == clients
    expected = {"B1": ["B2", "B4", "B5"], "B2": ["B1"], "B4": ["B1"], "B5": ["B1"]}
    assert await neighbours(network, *used) == expected
