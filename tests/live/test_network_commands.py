"""`godwit network` against a coordinator process and broker processes."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import msgspec
from tests.asynchronous import run
from tests.live.changing import ChangingNetwork, changing
from tests.live.watching import until

from godwit.api.network_api import ChangeKind, ChangeList, ChangeState, NetworkChange, NetworkView
from godwit.overlay.topology import star
from godwit.runtime.processes import free_port


async def godwit(network: ChangingNetwork, *words: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "godwit", "network", *words, "--at", network.coordinator.url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()


def test_an_operator_changes_a_network(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, star(2)) as network:
            await network.subscribers(6, "B2")
            await _looked_at(network)
            await _drained(network)
            await _refused(network)
            code, text, errors = await godwit(network, "restart", "B3", "--json")
            assert code == 0, errors
            assert msgspec.json.decode(text, type=NetworkChange).state is ChangeState.DONE
            code, text, _ = await godwit(network, "history")
            assert code == 0
            for words in ("restart B3", "undrain B2", "drain B2", "new disk", "done", "@"):
                assert words in text
            code, text, _ = await godwit(network, "history", "--json")
            kinds = [
                c.request.kind.value for c in msgspec.json.decode(text, type=ChangeList).changes
            ]
            assert kinds == ["restart", "undrain", "drain"], "a dry run is not a change"

    run(scenario(), within_s=150.0)


async def _looked_at(network: ChangingNetwork) -> None:
    async def has_links() -> bool:
        return len((await network.view()).links) == 2

    await until(has_links)
    code, text, errors = await godwit(network, "show")
    assert code == 0, errors
    for words in ("broker", "B1", "serving", "B2, B3", "2 links, 2 of them up"):
        assert words in text
    code, text, _ = await godwit(network, "show", "--json")
    view = msgspec.json.decode(text, type=NetworkView)
    assert [(link.one, link.other, link.status) for link in view.links] == [
        ("B1", "B2", "up"), ("B1", "B3", "up"),
    ]  # fmt: skip
    pids = {b.broker: b.account.pid for b in view.brokers if b.account}
    assert pids == {name: network.running.pid(name) for name in ("B1", "B2", "B3")}
    code, text, _ = await godwit(network, "show", network.running.http("B1"), "--json")
    (alone,) = msgspec.json.decode(text, type=NetworkView).brokers
    assert (code, alone.broker) == (0, "B1"), "a broker can be asked without a coordinator"


async def _drained(network: ChangingNetwork) -> None:
    code, text, _ = await godwit(network, "drain", "B2", "--dry-run")
    assert code == 0
    assert "3 clients would move to B1" in text
    assert "3 clients would move to B3" in text
    assert len(network.at("B2")) == 6
    code, text, errors = await godwit(
        network, "drain", "B2", "--per-s", "20", "--to", "B3", "--reason", "new disk"
    )
    assert code == 0, errors
    for words in ("drain B2: done", "6 of 6 clients moved", "took", "clients before", "expected"):
        assert words in text
    assert "change 1, step 1 of 1" in errors, "progress"
    assert len(network.at("B3")) == 6
    code, text, _ = await godwit(network, "show")
    assert "B2 admits no new clients: change 1, drain B2: new disk" in text
    code, text, _ = await godwit(network, "undrain", "B2")
    assert code == 0


async def _refused(network: ChangingNetwork) -> None:
    for words, says in (
        (("drain", "B7"), "there is no broker 'B7'; there are: B1, B2, B3"),
        (("leave", "B1"), "broker B1 is not a leaf: it links B2, B3"),
        (("restart",), "name brokers, or say --all"),
        (("abort",), "no change is under way"),
        (("join", "B4", "--link", "B9"), "there is no broker 'B9'"),
    ):
        code, _, errors = await godwit(network, *words)
        assert (code, errors.count("\n")) == (2, 1), errors
        assert says in errors


async def _joined_and_left(network: ChangingNetwork, source: str) -> None:
    """B9 joins, takes the clients of a broker, and hands them to B3."""
    joining = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "godwit", "network", "join", "B9", "--link", "B3",
        "--listen", f"127.0.0.1:{free_port()}", "--at", network.coordinator.url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert joining.stdout is not None
        async for line in joining.stdout:
            if b"join B9: done" in line:
                break
        code, _, errors = await godwit(network, "drain", source, "--to", "B9")
        assert code == 0, errors
        assert len(network.at("B9")) == 4
        code, _, errors = await godwit(network, "undrain", source)
        assert code == 0, errors
        code, _, errors = await godwit(network, "leave", "B9", "--to", "B3")
        assert code == 0, errors
        assert await joining.wait() == 3, "it has left for good"
    finally:
        with contextlib.suppress(ProcessLookupError):
            joining.kill()
        await joining.wait()
    assert len(network.at("B3")) == 4


def test_a_broker_joins_from_the_command_line_and_leaves(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, star(2)) as network:
            await network.publisher("B1")
            await network.subscribers(4, "B2")
            async with network.publishing():
                await _joined_and_left(network, "B2")
                links = [("B1", "B2"), ("B2", "B3")]
                change = await network.carry_out(ChangeKind.RESHAPE, "B1", "B2", "B3", links=links)
                assert change.state is ChangeState.DONE, change
                await _joined_and_left(network, "B3")  # Into a tree that no file has.
            assert not any(each.client.gaps.seen for each in network.clients)

    run(scenario(), within_s=180.0)
