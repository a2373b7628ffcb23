"""Processes that are forked are like others: output, exit codes, signals, environment, leash."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from tests.asynchronous import run, until
from tests.live.test_leash import children, runs

from godwit.errors import GodwitError
from godwit.runtime.forks import UNKNOWN_CODE, ForkedProcess, Forks, shared_forks

WITHIN_S = 60.0
MODULES = ["godwit.cli.broker"]
#: Says, when a process ends, what it was like.
PROBE = """
import atexit, json, os, random, signal, sys, threading
import numpy

def say():
    umask = os.umask(0)
    print(json.dumps({
        "environment": dict(os.environ), "folder": os.getcwd(), "umask": umask,
        "chance": random.random(), "numpy": numpy.random.random(),
        "is_alone": os.getsid(0) == os.getpid(),
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "child": signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL,
        "threads": len(os.listdir("/proc/self/task")), "arguments": sys.argv,
    }))

atexit.register(say)
"""


def with_forks(scenario: Callable[[Forks], Awaitable[None]]) -> None:
    async def bounded() -> None:
        forks = Forks()
        try:
            await scenario(forks)
        finally:
            forks.close()

    run(bounded(), within_s=WITHIN_S)


async def broker(forks: Forks, *options: str) -> ForkedProcess:
    arguments = ["broker", "--leash", "--id", "B1", "--listen", "127.0.0.1:0", *options]
    process = await forks.start(arguments, modules=MODULES)
    assert b"listens on" in await process.stdout.readline()
    return process


async def end(*processes: ForkedProcess) -> None:
    for process in processes:
        process.send_signal(signal.SIGKILL)
        await process.wait()
        process.close()


def files(pid: int) -> set[str]:
    found = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # The one by which we look.
            found.add(str(file.readlink()))
    return found


def threads(pid: int | None) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def shown(pid: int) -> list[str]:
    """The command line, as `ps` shows it."""
    return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")


@pytest.fixture
def probe(tmp_path: Path) -> Forks:
    """Processes with the module `probe`."""
    (tmp_path / "probe.py").write_text(PROBE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    return Forks({"PYTHONPATH": path})


async def probed(probe: Forks, environment: dict[str, str] | None = None) -> dict[str, Any]:
    process = await probe.start(["--version"], modules=["probe"], environment=environment)
    said = (await process.stdout.read()).decode().splitlines()
    assert await process.wait() == 0
    process.close()
    found: dict[str, Any] = json.loads(said[-1])
    return found


@pytest.mark.parametrize("loop", [asyncio, uvloop], ids=lambda loop: loop.__name__)
def test_a_command_prints_and_ends_and_nothing_of_it_is_left(loop: Any) -> None:
    async def scenario() -> None:
        forks = Forks()
        before = files(os.getpid())
        process = await forks.start(["--version"])
        assert b"protocol" in await process.stdout.read()
        assert await process.wait() == 0
        forks.close()
        await asyncio.sleep(0)
        assert files(os.getpid()) <= before

    loop.run(asyncio.wait_for(scenario(), WITHIN_S))


def test_a_command_that_fails_has_its_exit_code_and_says_why(tmp_path: Path) -> None:
    async def scenario(forks: Forks) -> None:
        arguments = ["broker", "--id", "B1", "--config", str(tmp_path / "missing.toml")]
        with (tmp_path / "log").open("w") as log:
            process = await forks.start(arguments, stderr=log.fileno())
        assert await process.wait() == 2
        process.close()
        assert "missing.toml" in (tmp_path / "log").read_text()

    with_forks(scenario)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 0)])
def test_signals_reach_it(number: signal.Signals, code: int) -> None:
    async def scenario(forks: Forks) -> None:
        one, other = await broker(forks), await broker(forks)
        one.send_signal(number)
        assert await one.wait() == code
        one.send_signal(number)  # Nobody is there.
        assert other.returncode is None
        other.send_signal(signal.SIGKILL, to_group=True)
        assert await other.wait() == -9
        await end(one, other)

    with_forks(scenario)


def test_it_has_what_we_have_now_and_not_when_the_first_was_forked(
    probe: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        monkeypatch.setenv("BEFORE", "is set")
        first = await probed(probe)
        assert first["environment"]["BEFORE"] == "is set"
        monkeypatch.delenv("BEFORE")
        monkeypatch.setenv("AFTER", "\udcff")  # Not all environments are text.
        monkeypatch.chdir(tmp_path)
        before = os.umask(0o027)
        try:
            second = await probed(probe)
        finally:
            os.umask(before)
        assert second["environment"] == dict(os.environ)
        assert (second["folder"], second["umask"]) == (str(tmp_path), 0o027)
        assert (await probed(probe, {"ONLY": "this"}))["environment"] == {"ONLY": "this"}

    try:
        run(scenario(), within_s=WITHIN_S)
    finally:
        probe.close()


def test_it_is_a_process_as_any_other(probe: Forks) -> None:
    async def scenario() -> None:
        one, other = await probed(probe), await probed(probe)
        assert one["chance"] != other["chance"]
        assert one["numpy"] != other["numpy"]
        assert one["is_alone"]
        assert one["interrupt"]
        assert one["child"]
        assert one["threads"] == 1
        assert one["arguments"] == ["godwit", "--version"]
        assert threads(probe.server_pid) == 1, "only one would be forked"

    try:
        run(scenario(), within_s=WITHIN_S)
    finally:
        probe.close()


def test_it_has_no_files_of_others() -> None:
    """Someone else's leash would keep a process alive."""

    async def scenario(forks: Forks) -> None:
        processes = [await broker(forks) for _ in range(3)]
        ours = files(os.getpid())
        pipes = [{each for each in files(p.pid) if "pipe:" in each} for p in processes]
        first, second, third = pipes
        errors = os.readlink("/proc/self/fd/2")  # noqa: PTH115  Not a path.
        assert first & second <= {errors}
        assert second & third <= {errors}
        assert len(first & ours - {errors}) == 2, "standard input and output"
        sockets = [{each for each in files(p.pid) if "socket:" in each} for p in processes]
        assert not sockets[0] & sockets[1]
        assert not sockets[1] & sockets[2]
        assert forks.server_pid is not None
        for found in sockets:
            assert not found & files(forks.server_pid)

        for process in processes:
            process._drop_leash()
            assert await process.wait() == 0
        await end(*processes)

    with_forks(scenario)


def test_it_listens_on_a_socket_that_it_is_given() -> None:
    async def scenario(forks: Forks) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            arguments = ["broker", "--leash", "--id", "B1"]
            process = await forks.start(arguments, modules=MODULES, listener=listener)
        assert (await process.stdout.readline()).decode().endswith(f"127.0.0.1:{port}\n")
        assert shown(process.pid)[:5] == ["godwit", *arguments]
        await end(process)

    with_forks(scenario)


def test_one_server_serves_all_loops() -> None:
    async def scenario() -> int | None:
        process = await shared_forks().start(["--version"])
        assert await process.wait() == 0
        process.close()
        return shared_forks().server_pid

    first = run(scenario(), within_s=WITHIN_S)
    assert first is not None
    assert run(scenario(), within_s=WITHIN_S) == first


def test_what_is_left_ends_with_us_and_with_the_server() -> None:
    pids: list[int] = []

    async def scenario(forks: Forks) -> None:
        left, closed = await broker(forks), await broker(forks)
        pids.extend([left.pid, closed.pid])
        closed.close()
        forks.close()
        assert await left.wait() == UNKNOWN_CODE
        left.close()
        await until(lambda: not any(map(runs, pids)))

    with_forks(scenario)


def test_another_server_is_started_if_one_dies() -> None:
    async def scenario(forks: Forks) -> None:
        one = await broker(forks)
        assert forks.server_pid is not None
        os.kill(forks.server_pid, signal.SIGKILL)
        assert await one.wait() == UNKNOWN_CODE
        other = await broker(forks)
        await end(one, other)

    with_forks(scenario)


def test_a_broker_after_an_upgrade_is_the_new_one(probe: Forks, tmp_path: Path) -> None:
    async def scenario() -> None:
        before = await broker(probe)
        await probed(probe)
        old = probe.server_pid
        await probed(probe)
        assert (probe.server_pid, threads(old)) == (old, 1)
        (tmp_path / "probe.py").write_text(PROBE.replace("chance", "upgraded"))
        found = await asyncio.gather(probed(probe), probed(probe))
        assert all("upgraded" in each for each in found)
        assert old is not None
        assert probe.server_pid != old
        assert runs(old), "it knows how its processes end"
        before.send_signal(signal.SIGTERM)
        assert await before.wait() == 0
        before.close()
        await until(lambda: not runs(old))

    try:
        run(scenario(), within_s=WITHIN_S)
    finally:
        probe.close()


def test_a_server_that_dies_before_it_forks_is_an_error() -> None:
    async def scenario(forks: Forks) -> None:
        starting = asyncio.create_task(forks.start(["--version"]))
        await until(lambda: forks.server_pid is not None)
        assert forks.server_pid is not None
        os.kill(forks.server_pid, signal.SIGKILL)
        with pytest.raises(GodwitError, match="has died"):
            await starting

    with_forks(scenario)


def test_nothing_is_forked_for_one_who_does_not_wait() -> None:
    async def scenario(forks: Forks) -> None:
        starting = asyncio.create_task(broker(forks))
        await until(lambda: forks.server_pid is not None)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        process = await forks.start(["--version"])
        assert forks.server_pid is not None
        assert set(children(forks.server_pid)) <= {process.pid}
        await end(process)

    with_forks(scenario)
