"""`godwit up` with the services of a network file, as an operator runs it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.asynchronous import run
from tests.cli.test_cli import run as run_command
from tests.cli.test_cli import started
from tests.live.watching import until

from godwit.api import broker_api, coordinator_api
from godwit.api import datacluster_api as api
from godwit.client import connect
from godwit.content.channel_messages import ChannelSubscriptionId, Position
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.overlay.topology import chain
from godwit.runtime.deployment import LocalDeployment
from godwit.runtime.settings import (
    NetworkSettings,
    ServiceSettings,
    dump_network,
    load_network,
    network_of,
)

DATASET = "CREATE DATASET Readings (sensor STRING, value DOUBLE)"
ADVERTISED = "class = 'READING' and sensor is a string and value is a number"
FEED = f'CREATE FEED readings FROM FILTER "{ADVERTISED}" INTO Readings'
CHANNEL = """CREATE CHANNEL Of(name STRING) CONTINUOUS AS
SELECT sensor, value FROM NEW Readings WHERE sensor = :name"""

#: What Spark says when it starts.
USUAL = ("starting Spark", "WARNING: Using incubator modules", "NOTE: Picked up")


def network_file(folder: Path, **services: dict[str, str | int | float | bool]) -> Path:
    """Two brokers, and these services, on any free ports."""
    tables = {name: {"listen": "127.0.0.1:0", **table} for name, table in services.items()}
    network: NetworkSettings = msgspec.structs.replace(
        network_of(chain(2), http_port=0), services=msgspec.convert(tables, ServiceSettings)
    )
    path = folder / "net.toml"
    path.write_text(dump_network(network))
    return path


@contextlib.contextmanager
def up(path: Path) -> Iterator[dict[str, list[str]]]:
    """What runs, and its addresses, as the command prints them; then Ctrl-C."""
    with started("up", str(path)) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline().startswith("starting 2 brokers")
        found: dict[str, list[str]] = {}
        for line in process.stdout:
            if line.startswith("all are linked"):
                break
            name, *addresses = line.split()
            found[name] = addresses
        else:
            pytest.fail(f"it ended at once: {process.stderr.read()}")
        yield found
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
        said = [line for line in errors.splitlines() if not line.startswith(USUAL)]
        assert (process.returncode, out, said) == (0, "stopping ...\n", [])


def test_with_a_coordinator(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    path = network_file(tmp_path, coordinator={"state": state, "report_s": 0.5})
    with up(path) as running:

        async def scenario() -> None:
            async with HttpClient(running["coordinator"][0]) as caller:

                async def all_report() -> bool:
                    shown = (await caller.call(coordinator_api.BROKERS, Nothing())).brokers
                    return len([each for each in shown if each.report_age_s is not None]) == 2

                await until(all_report)
            async with connect(f"bcs+{running['coordinator'][0]}") as client:
                assert client.session.broker in running

        run(scenario(), within_s=60)
    assert Path(state).exists()


def test_a_service_that_ends_is_noticed(tmp_path: Path) -> None:
    async def scenario() -> None:
        network = load_network(network_file(tmp_path, coordinator={"state": str(tmp_path)}))
        async with LocalDeployment(network) as running:
            ending = asyncio.create_task(running.first_end())
            os.kill(running.services["coordinator"].pid, signal.SIGKILL)
            assert await ending == "godwit coordinator ended with code -9"
            assert await running.stop() == {"B1": 0, "B2": 0, "coordinator": -9}

    run(scenario(), within_s=60)


def test_what_is_wrong_with_a_service_is_shown(tmp_path: Path) -> None:
    path = network_file(tmp_path, coordinator={"alfa": 1})
    done = run_command("up", str(path))
    assert done.returncode == 2
    assert done.stderr == (
        f"godwit: {path}: [services.coordinator]: Object contains unknown field `alfa`\n"
    )
    listening = str(tmp_path / "busy.toml")
    with up(network_file(tmp_path, coordinator={"state": str(tmp_path)})) as running:
        address = running["coordinator"][0].removeprefix("http://")
        text = path.read_text().replace("127.0.0.1:0", address, 1)
        Path(listening).write_text(text)
        done = run_command("up", listening)
    assert (done.returncode, done.stderr) == (
        2, f"godwit: cannot serve HTTP on {address}: address already in use\n",
    )  # fmt: skip


def test_with_everything(tmp_path: Path) -> None:
    """A record goes from a publisher through a feed and a channel to a subscriber over HTTP."""
    path = network_file(
        tmp_path,
        datacluster={"folder": str(tmp_path / "data"), "master": "local[2]"},
        coordinator={"state": str(tmp_path / "state")},
    )
    with up(path) as running:
        run(_publish_and_ask(running), within_s=240)


async def _publish_and_ask(running: dict[str, list[str]]) -> None:
    (url, metrics), (cluster,) = running["B2"], running["datacluster"]
    async with (
        HttpClient(cluster, answer_s=120.0, attempts=1) as operator,
        HttpClient(metrics.removesuffix("/metrics")) as broker,
        connect(url) as publisher,
    ):
        for text in (DATASET, FEED, CHANNEL):
            await operator.call(api.STATEMENT, api.Statement(text))
        session = (await broker.call(broker_api.LOGIN, broker_api.Login("ann"))).session
        wanted = broker_api.SubscribeChannel(
            session=session, channel="Of", arguments={"name": "a"}, wait_s=60
        )
        subscribed = await broker.call(broker_api.SUBSCRIBE, wanted, answer_s=90)
        await publisher.advertise(ADVERTISED)
        for value, sensor in enumerate("aba"):
            await publisher.publish({"class": "READING", "sensor": sensor, "value": value})
        took = list[object]()
        positions: dict[ChannelSubscriptionId, Position] = {}
        while len(took) < 2:
            asked = broker_api.ResultsAfter(session=session, positions=positions, wait_s=30)
            answer = await broker.call(broker_api.RESULTS, asked, answer_s=60)
            took += [row for part in answer.results for row in part.rows]
            positions = answer.positions
        assert took == [{"sensor": "a", "value": 0.0}, {"sensor": "a", "value": 2.0}]
        assert set(positions) == {subscribed.subscription}
