"""`godwit up --restart`: brokers that are killed come back, and nothing acknowledged is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.asynchronous import run
from tests.cli.test_cli import GODWIT
from tests.live.test_leash import grandchildren, kill_all, runs, wait_until_gone

from godwit.client import connect
from godwit.overlay.topology import chain
from godwit.runtime.settings import dump_network, network_of

PUBLISHED = 300


class Up:
    """`godwit up` in a process; lines of its output, and the processes of its brokers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.urls: dict[str, str] = {}
        self.http: dict[str, str] = {}

    async def out(self) -> str:
        assert self.process.stdout
        return (await self.process.stdout.readline()).decode()

    async def log(self, event: str) -> str:
        """The next line of the log with this event."""
        assert self.process.stderr
        while line := (await self.process.stderr.readline()).decode():
            if event in line:
                return line
        raise AssertionError(f"ended without {event!r}")

    @property
    def brokers(self) -> dict[str, int]:
        """Processes that run, by broker."""
        if self.process.returncode is not None:
            return {}
        found = {}
        for pid in filter(runs, grandchildren(self.process.pid)):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                if "--id" in words:
                    found[words[words.index("--id") + 1]] = pid
        return found

    def kill(self, broker: str, by: signal.Signals = signal.SIGKILL) -> int:
        pid = self.brokers[broker]
        os.kill(pid, by)
        return pid


@contextlib.asynccontextmanager
async def up(folder: Path, *options: str) -> AsyncIterator[Up]:
    """A chain of three brokers, with HTTP, on any free ports."""
    file = folder / "net.toml"
    file.write_text(dump_network(network_of(chain(3), http_port=0)))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *GODWIT, "up", str(file), *options, stdout=pipe, stderr=pipe
    )
    network = Up(process)
    pids: list[int] = []
    try:
        while not (line := await network.out()).startswith("all are linked"):
            if found := re.match(r"\s+(B\d)\s+(godwit://\S+)\s+(\S+)/metrics", line):
                network.urls[found[1]], network.http[found[1]] = found[2], found[3]
            assert line, "it ended"
        pids += network.brokers.values()
        yield network
    finally:
        pids += network.brokers.values()
        if process.returncode is None:
            process.kill()
            await process.wait()
        kill_all(pids)


def test_brokers_that_are_killed_come_back_and_nothing_is_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            up(tmp_path, "--restart") as network,
            connect(network.urls["B1"], name="paul") as paul,
            connect(network.urls["B3"], name="alice") as alice,
            alice.subscribe("x >= 0") as events,
        ):
            await paul.advertise("x >= 0")
            await events.in_effect()

            async def publish() -> None:
                for number in range(PUBLISHED):
                    await paul.publish({"x": number})
                    if number % 10 == 0:
                        await paul.flush()
                await paul.flush()

            publishing = asyncio.create_task(publish())
            received = []
            for killed in ("B2", "B1", "B3"):
                received += [(await anext(events)).content["x"] for _ in range(PUBLISHED // 6)]
                old = network.kill(killed)
                line = await network.log("restarting")
                assert f"broker {killed}" in line
                assert "code -9 (SIGKILL)" in line
                assert "restart=1 of=5" in line
                assert f"broker {killed}" in await network.log("restarted")
                assert network.brokers[killed] != old
            received += [(await anext(events)).content["x"] for _ in range(PUBLISHED // 2)]
            await publishing
            assert received == list(range(PUBLISHED))

            network.process.send_signal(signal.SIGINT)
            assert await network.process.wait() == 0

    run(scenario(), within_s=90.0)


def test_a_restarted_broker_has_the_same_addresses(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with up(tmp_path, "--restart") as network:
            network.kill("B2", signal.SIGHUP)  # Makes room for its successor, and exits with 0.
            assert "code 0" in await network.log("restarting")
            await network.log("restarted")
            host, port = network.http["B2"].removeprefix("http://").split(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
            async with connect(network.urls["B2"]) as client:
                assert client.session.broker == "B2"

    run(scenario(), within_s=60.0)


def test_too_many_restarts_end_everything_with_the_reason(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with up(tmp_path, "--restart", "--restart-limit", "2") as network:
            brokers = list(network.brokers.values())
            for _ in range(2):
                network.kill("B2")
                await network.log("restarted")
            brokers += network.brokers.values()
            network.kill("B2")
            said = await network.log("given up")
            assert said == (
                "godwit: broker B2 ended with code -9 (SIGKILL), and is given up after"
                " 2 restarts within 60 s\n"
            )
            assert await network.process.wait() == 2
            wait_until_gone(brokers)

    run(scenario(), within_s=60.0)


def test_ctrl_c_while_a_broker_is_restarted_leaves_no_process(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with up(tmp_path, "--restart") as network:
            brokers = list(network.brokers.values())
            network.kill("B2")
            await network.log("restarting")
            while len(network.brokers) < 3:  # noqa: ASYNC110  There is no event for it.
                await asyncio.sleep(0.001)
            brokers += network.brokers.values()
            network.process.send_signal(signal.SIGINT)
            assert network.process.stderr
            assert "did not stop cleanly" not in (await network.process.stderr.read()).decode()
            assert await network.process.wait() == 0
            wait_until_gone(brokers)

    run(scenario(), within_s=60.0)


def test_without_the_option_a_broker_that_dies_ends_everything(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with up(tmp_path) as network:
            network.kill("B2")
            assert "broker B2 ended with code -9" in await network.log("godwit:")
            assert await network.process.wait() == 2

    run(scenario(), within_s=60.0)


@pytest.mark.parametrize("options", [["--restart-limit", "0"], ["--restart-within-s", "0"]])
def test_limits_are_checked(options: list[str], tmp_path: Path) -> None:
    async def scenario() -> None:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *GODWIT, "up", str(tmp_path), *options, stdout=pipe, stderr=pipe
        )
        _, errors = await process.communicate()
        assert process.returncode == 2
        assert options[0] in errors.decode()

    run(scenario(), within_s=60.0)
