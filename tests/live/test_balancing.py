"""Broker processes that balance their load; every delivery is checked.

Times in these tests are those of the settings, about a twentieth of the thesis's; waits end when
what is waited for has happened.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest
from benchmarks.balancing_live import (
    BANDWIDTHS,
    FIRST,
    HEAD,
    KINDS_AFTER,
    SETTINGS,
    LiveStar,
    live_network,
    live_star,
    until,
)
from tests.asynchronous import run
from tests.live.watching import metric

from godwit.client import connect
from godwit.errors import RefusedError
from godwit.policies.offload.settings import BalancingSettings
from godwit.runtime.settings import BrokerSettings, dump_network

TEST_S = 240.0
#: Three edge brokers, and half of the subscribers: enough where numbers do not matter.
FEW = {edge: BANDWIDTHS[edge] for edge in ("B2", "B3", "B4")}
FEW_SUBSCRIBERS = 24


def test_unequal_brokers_share_the_load_and_again_after_a_step(tmp_path: Path) -> None:
    """All subscribers join one of four edge brokers, which is overloaded by that."""
    run(_share(tmp_path), within_s=TEST_S)
    rows = pq.read_table(tmp_path / "decisions").to_pylist()
    asked = [row for row in rows if row["action"] == "asked"]
    assert all(row["policy"] == "offload" for row in asked)
    assert FIRST in {row["source"] for row in asked}
    for row in asked:
        reason = json.loads(row["reason"])
        assert reason["local_expected"] < reason["local_before"]
        assert reason["remote_expected"] > reason["remote_before"]
    ended = [json.loads(row["reason"]) for row in rows if row["action"] == "ended"]
    moved = [each for each in ended if each["side"] == "offloader" and each["moved"]]
    assert all(abs(each["difference_after"]) < each["difference_before"] for each in moved), "L39"
    achieved = [json.loads(row["reason"]) for row in rows if row["action"] == "achieved"]
    assert {"output_before", "output_predicted", "output_achieved", "output_error"} <= set(
        achieved[0]
    )


async def _share(folder: Path) -> None:
    async with live_star(live_network(trace=str(folder))) as star:
        await star.publish()
        await star.join(FIRST)
        await star.in_session(("sampling",))
        before = await star.outputs()
        assert before[FIRST] > 1, "more is asked for than it may send"
        outputs = await star.balanced()
        assert max(outputs.values()) < before[FIRST]
        assert len(star.homes) == len(BANDWIDTHS)
        star.kinds = KINDS_AFTER
        await star.balanced()
        asked = await _sum(star, "godwit_balancing_moves_total", outcome="asked")
        left = await _sum(star, "godwit_balancing_moves_total", outcome="left")
        arrived = await _sum(star, "godwit_balancing_moves_total", outcome="arrived")
        assert asked >= left == arrived > 0
        assert await _sum(star, "godwit_decisions_total", action="asked") == asked
        assert await _sum(star, "godwit_balancing_sessions_total", ending="moved") > 0
        await star.check()
        codes = await star.running.stop()
    assert set(codes.values()) == {0}


async def _sum(star: LiveStar, name: str, **labels: str) -> float:
    return sum([await metric(star.running, edge, name, **labels) for edge in star.edges])


@pytest.mark.parametrize(
    "phases",
    [("accepted", "receiving"), ("sampling", "migrating")],
    ids=["the acceptor", "the offloader"],
)
def test_a_broker_is_killed_in_the_middle_of_a_session(phases: tuple[str, str]) -> None:
    run(_kill(phases), within_s=TEST_S)


async def _kill(phases: tuple[str, str]) -> None:
    async with live_star(live_network(bandwidths=FEW)) as star:
        await star.publish()
        await star.join(FIRST, FEW_SUBSCRIBERS)
        # The load that must be shared is not there before.
        victim = await star.in_session(phases)
        await star.kill(victim)
        await star.balanced()
        assert len(star.homes) == len(FEW)
        accounts = await star.accounts()
        assert {account.status for account in accounts.values()} <= {"OK", "STABILIZING"}
        await star.check()


def test_a_broker_that_joins_gets_its_share() -> None:
    run(_join(), within_s=TEST_S)


async def _join() -> None:
    async with live_star(live_network(bandwidths=FEW)) as star:
        await star.publish()
        await star.join(FIRST, FEW_SUBSCRIBERS)
        await star.in_session(("sampling",))
        joining = BrokerSettings(
            id="B9",
            http="127.0.0.1:0",
            links=[HEAD],
            output_bandwidth_bytes_s=BANDWIDTHS["B5"],
            limit_output=True,
        )
        await star.running.join(joining)

        async def has_its_share() -> bool:
            return star.homes["B9"] > 0

        await until(has_its_share, within_s=TEST_S)
        assert "B9" in await star.balanced()
        await star.check()


# -- operators ---------------------------------------------------------------------------------


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "godwit", "balancing", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(command, *arguments)


def test_operators_look_first_then_let_go_and_can_stop_it(tmp_path: Path) -> None:
    run(_operate(tmp_path), within_s=TEST_S)


async def _operate(folder: Path) -> None:
    # One client in five seconds: a session lasts until it is aborted.
    proposing = msgspec.structs.replace(SETTINGS, dry_run=True, moves_per_s=0.2)
    async with live_star(live_network(proposing, FEW)) as star:
        urls = [star.running.http(edge) for edge in [HEAD, *star.edges]]
        await star.publish()
        await star.join(FIRST, FEW_SUBSCRIBERS)
        await _decided(star, "proposed")
        assert star.homes == {FIRST: FEW_SUBSCRIBERS}, "a dry run moves nobody"

        paused = await ask("pause", *urls)
        assert (paused.returncode, paused.stderr) == (0, "")
        assert paused.stdout.count("paused, dry run") == len(urls)
        resumed = await ask("resume", *urls, "--dry-run", "off", "--json")
        brokers = msgspec.json.decode(resumed.stdout)["brokers"]
        assert [each["broker"] for each in brokers] == [HEAD, *star.edges]
        assert not any(each["is_paused"] or each["dry_run"] for each in brokers)

        await _has_moved(star)
        await ask("pause", *urls)
        aborted = await ask("abort", *urls)
        assert aborted.returncode == 0
        await _idle(star)
        await _decided(star, "gave up")
        assert "an operator has aborted it" in (await ask("show", *urls)).stdout
        assert star.homes[FIRST] > FEW_SUBSCRIBERS / 2, "it was in the middle"
        await _decided(star, "achieved")
        await _check_show(star, urls, folder)
        await star.check()


async def _has_moved(star: LiveStar) -> None:
    async def has_moved() -> bool:
        return star.homes[FIRST] < FEW_SUBSCRIBERS

    await until(has_moved, within_s=TEST_S)


async def _decided(star: LiveStar, action: str) -> None:
    async def is_decided() -> bool:
        return await metric(star.running, FIRST, "godwit_decisions_total", action=action) > 0

    await until(is_decided, within_s=TEST_S)


async def _idle(star: LiveStar) -> None:
    async def is_idle() -> bool:
        return all(account.session is None for account in (await star.accounts()).values())

    await until(is_idle, within_s=TEST_S)


async def _check_show(star: LiveStar, urls: Sequence[str], folder: Path) -> None:
    """Of a file, and with a broker that does not answer."""
    shown = (await ask("show", *urls)).stdout
    assert " head " in shown
    assert shown.count(" edge ") == len(FEW)
    assert "achieved" in shown
    file = folder / "network.toml"
    brokers = [
        msgspec.structs.replace(broker, http=url.removeprefix("http://"))
        for broker, url in zip(star.running.network.broker, urls, strict=True)
    ]
    network = msgspec.structs.replace(star.running.network, broker=brokers)
    file.write_text(dump_network(network))
    assert (await ask("show", str(file), "--decisions", "0")).stdout.count(" edge ") == len(FEW)
    await star.running.kill("B4")
    partly = await ask("show", str(file))
    assert partly.returncode == 1
    assert partly.stdout.count(" edge ") == len(FEW) - 1
    assert "B4 has not answered as it should: GET http://127.0.0.1" in partly.stderr
    await star.running.restart("B4")


def test_an_edge_broker_serves_no_publishers_and_says_where_to_go() -> None:
    run(_refuse(), within_s=TEST_S)


async def _refuse() -> None:
    async with live_star(live_network(BalancingSettings(), FEW)) as star:

        async def has_role() -> bool:
            account = await star.account("B3")
            return account is not None and account.role == "edge"

        await until(has_role, within_s=TEST_S)
        async with connect(star.running.url("B3"), name="paul") as paul:
            with pytest.raises(RefusedError, match=f"B3 is an edge broker .* at broker {HEAD}"):
                await paul.advertise("class = 'LOAD' and kind is a number")
        async with connect(star.running.url(HEAD), name="paul") as paul:
            await paul.advertise("class = 'LOAD' and kind is a number")
