"""No broker outlives whoever started it, and what is wrong is said in one sentence."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from godwit.overlay.topology import chain
from godwit.runtime.settings import dump_network, network_of

GODWIT = [sys.executable, "-m", "godwit"]


@pytest.fixture
def network_file(tmp_path: Path) -> Path:
    path = tmp_path / "net.toml"
    path.write_text(dump_network(network_of(chain(3))))
    return path


@contextmanager
def launched(path: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """`godwit up`, when all are linked, and the brokers it started."""
    with subprocess.Popen(  # noqa: S603  ourselves
        [*GODWIT, "up", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        brokers: list[int] = []
        try:
            assert process.stdout
            for line in process.stdout:
                if line.startswith("all are linked"):
                    break
            else:
                assert process.stderr
                pytest.fail(process.stderr.read())
            brokers += grandchildren(process.pid)
            yield process, brokers
        finally:
            process.kill()
            kill_all(brokers)


def children(pid: int) -> list[int]:
    try:
        return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def grandchildren(pid: int) -> list[int]:
    """Brokers: `godwit up` has a child that forks them."""
    return [each for child in children(pid) for each in children(child)]


def kill_all(pids: list[int]) -> None:
    """Should the leash not hold, a test that fails leaves nobody behind all the same."""
    for pid in filter(runs, pids):
        os.kill(pid, signal.SIGKILL)


def wait_until_gone(pids: list[int], *, within_s: float = 15.0) -> None:
    deadline_s = time.monotonic() + within_s
    while left := [pid for pid in pids if runs(pid)]:
        assert time.monotonic() < deadline_s, f"{left} still run"
        time.sleep(0.05)


def runs(pid: int) -> bool:
    """Whether there is such a process; one that has ended and waits to be asked does not run."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_brokers_end_when_their_launcher_is_killed(network_file: Path) -> None:
    with launched(network_file) as (process, brokers):
        assert len(brokers) == 3
        others = children(process.pid)
        assert others
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=10)
        wait_until_gone([*brokers, *others])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_stops_all_brokers_in_good_order(network_file: Path, number: signal.Signals) -> None:
    with launched(network_file) as (process, brokers):
        others = children(process.pid)
        process.send_signal(number)
        out, errors = process.communicate(timeout=30)

        assert (process.returncode, errors) == (0, "")
        assert out.endswith("stopping ...\n")
        assert not any(map(runs, [*brokers, *others]))


def test_ctrl_c_while_brokers_start_leaves_none_behind(tmp_path: Path) -> None:
    """B2 waits for a neighbour that is not there, so the network is never complete."""
    path = tmp_path / "net.toml"
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    path.write_text(
        f'[[broker]]\nid = "B1"\n\n[[broker]]\nid = "B2"\nlinks = ["godwit://127.0.0.1:{port}"]\n'
    )
    with subprocess.Popen(  # noqa: S603  ourselves
        [*GODWIT, "up", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        brokers: list[int] = []
        try:
            assert process.stdout
            assert process.stdout.readline() == "starting 2 brokers ...\n"
            deadline_s = time.monotonic() + 15
            while len(grandchildren(process.pid)) < 2:
                assert time.monotonic() < deadline_s
                time.sleep(0.05)
            brokers += grandchildren(process.pid)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
            assert "Traceback" not in errors
            wait_until_gone(brokers)
        finally:
            process.kill()
            kill_all(brokers)


def test_a_broker_that_dies_takes_the_network_down_with_one_sentence(network_file: Path) -> None:
    with launched(network_file) as (process, brokers):
        os.kill(brokers[1], signal.SIGKILL)
        _, errors = process.communicate(timeout=30)

        assert process.returncode == 2
        assert errors.startswith("godwit: broker B")
        assert errors.endswith("ended with code -9\n")
        assert errors.count("\n") == 1
        assert not any(map(runs, brokers))


@pytest.mark.parametrize(("key", "does"), [("listen", "listen"), ("http", "serve HTTP")])
def test_a_taken_port_is_one_clear_sentence(tmp_path: Path, key: str, does: str) -> None:
    path = tmp_path / "net.toml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        path.write_text(f'[[broker]]\nid = "B1"\n{key} = "{where}"\n')
        for command in (["up", str(path)], ["broker", "--id", "B1", "--config", str(path)]):
            done = subprocess.run(  # noqa: S603  ourselves
                [*GODWIT, *command], capture_output=True, text=True, timeout=30, check=False
            )
            assert done.stderr == f"godwit: cannot {does} on {where}: address already in use\n"
            assert done.returncode == 2


def test_a_broker_on_a_leash_ends_when_its_standard_input_does() -> None:
    with subprocess.Popen(  # noqa: S603  ourselves
        [*GODWIT, "broker", "--id", "B1", "--leash"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdin
            assert process.stdout
            assert process.stdout.readline().startswith("B1 listens on godwit://127.0.0.1:")
            process.stdin.close()
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
