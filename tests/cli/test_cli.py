"""The command line, run as users run it, in a process."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.command_tree import subcommands
from typer.core import TyperGroup
from typer.testing import CliRunner

from godwit.cli import app
from godwit.runtime.processes import free_port

GODWIT = [sys.executable, "-m", "godwit"]


def run(
    *arguments: str, stdin: str = "", timeout_s: float = 120.0
) -> subprocess.CompletedProcess[str]:
    command = [*GODWIT, *arguments]
    return subprocess.run(  # noqa: S603  ourselves
        command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False
    )


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A long-running command; it is killed at the end of the context."""
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603  ourselves
        [*GODWIT, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a running broker."""
    with started("broker", "--id", "B1", "--leash", "--log-level", "warning") as process:
        assert process.stdout
        yield process.stdout.readline().split()[-1]


@contextmanager
def subscribed(url: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`godwit sub`, once it is in effect."""
    with started("sub", url, *arguments) as process:
        assert process.stderr
        assert process.stderr.readline().endswith(" listens\n")
        yield process


# -- talking to a broker -----------------------------------------------------------------------


def test_what_is_published_is_printed(url: str) -> None:
    with subscribed(url, "volume > 5", "--count", "2", "--name", "alice") as alice:
        done = run("pub", url, '{"volume": 4}', "[volume,6]", '{"volume": 7}', "--name", "paul")
        out, errors = alice.communicate(timeout=30)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "paul published 3\n")
    lines = out.splitlines()
    assert [line.split("  ")[1] for line in lines] == ["[volume,6]", "[volume,7]"]
    assert all(line.startswith("paul#") for line in lines)
    assert (alice.returncode, errors) == (0, "")


def test_json_goes_through_pipes(url: str) -> None:
    quotes = [
        {"class": "STOCK", "symbol": "O'X", "volume": volume, "open": 0.5, "new": True}
        for volume in (300, 400, 500)
    ]
    stdin = "\n".join(map(json.dumps, quotes)) + "\n\n"
    with subscribed(url, "class = 'STOCK' and volume >= 400", "--count", "2", "--json") as sub:
        done = run("pub", url, "--json", "--name", "petra", stdin=stdin)
        out, _ = sub.communicate(timeout=30)

    assert json.loads(done.stdout) == {"client": "petra", "published": 3}
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["content"] for event in events] == quotes[1:]
    assert [event["publisher"] for event in events] == ["petra", "petra"]
    assert events[0]["sequence"] + 1 == events[1]["sequence"]
    assert events[0]["hops"] == 0


def test_lines_are_published_as_they_come(url: str) -> None:
    """Not when standard input ends: the publisher may be a sensor."""
    with (
        subscribed(url, "celsius is present") as alice,
        started("adv", url, "celsius is present", "--name", "sensor") as sensor,
    ):
        assert sensor.stdin
        assert sensor.stderr
        assert alice.stdout
        assert sensor.stderr.readline() == "sensor advertises celsius is present\n"
        for degrees in (20, 21):
            sensor.stdin.write(f"[celsius,{degrees}]\n")
            sensor.stdin.flush()
            assert alice.stdout.readline().endswith(f"  [celsius,{degrees}]\n")
        _, errors = sensor.communicate(timeout=30)
        assert (sensor.returncode, errors) == (0, "sensor published 2\n")
        alice.send_signal(signal.SIGINT)
        out, errors = alice.communicate(timeout=30)
        assert (alice.returncode, out, errors) == (0, "", "")


def test_a_reader_who_has_seen_enough_is_no_error(url: str) -> None:
    with subscribed(url, "n is present") as alice:
        assert alice.stdout
        alice.stdout.close()
        assert run("pub", url, *(f"[n,{number}]" for number in range(5))).returncode == 0
        assert alice.wait(timeout=30) == 0
        assert alice.stderr
        assert alice.stderr.read() == ""


def test_a_name_that_is_taken_is_one_clear_sentence(url: str) -> None:
    with subscribed(url, "n is present", "--name", "alice"):
        done = run("sub", url, "n is present", "--name", "alice")

    assert done.returncode == 2
    assert done.stderr.startswith("godwit: the name alice belongs to a client that is connected to")
    assert done.stderr.count("\n") == 1


def test_what_is_not_advertised_is_not_published(url: str) -> None:
    done = run("adv", url, "n < 5", stdin="[n,1]\n[n,7]\n")

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("godwit: line 2: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(("sub", "URL", "n >> 5"), "column 4: expected", id="no filter"),
        pytest.param(("sub", "URL", "n > 5 and n < 3"), "nothing can match", id="no match"),
        pytest.param(("sub", "http://localhost", "n > 5"), "write godwit://", id="no broker's URL"),
        pytest.param(("sub", "godwit://localhost", "n > 5"), "write HOST:PORT", id="no port"),
        pytest.param(("pub", "URL", "{n: 5}"), "line 1:", id="no JSON"),
        pytest.param(("pub", "URL", '{"n": [5]}'), "line 1:", id="no value"),
        pytest.param(("pub", "URL", "n,5"), "line 1:", id="no record"),
        pytest.param(("adv", "URL", "class = '$LOAD'"), "control classes", id="not ours"),
        pytest.param(("sub", "URL", "n > 5", "--name", "a b"), "a b", id="no name"),
        pytest.param(("topology", "ring"), "choose from tree, mesh, chain, star", id="no shape"),
        pytest.param(("up", "nowhere.toml"), "cannot read nowhere.toml", id="no file"),
        pytest.param(("simulate", "nowhere.toml"), "cannot read nowhere.toml", id="no file either"),
        pytest.param(("broker", "--id", "a b"), "id", id="no id"),
        pytest.param(
            ("broker", "--id", "B1", "--listen", "here"), "write HOST:PORT", id="no place"
        ),
        pytest.param(("broker", "--id", "B1", "--log-level", "loud"), "loud", id="no level"),
        pytest.param(("broker", "--id", "B1", "--link", "B2"), "B2", id="no neighbour"),
        pytest.param(
            ("replay", "7", "--overlay", "ring"), "'dht', 'mesh', 'tree'", id="no overlay"
        ),
        pytest.param(("explain", "n >> 5", "[n,1]"), "column 4", id="nothing to explain"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(
    arguments: tuple[str, ...], sentence: str, url: str
) -> None:
    done = run(*(url if word == "URL" else word for word in arguments))

    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("godwit: ")
    assert sentence in done.stderr


def test_nobody_there_is_one_clear_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"godwit://127.0.0.1:{nobody.getsockname()[1]}"
    done = run("pub", url, "[n,1]")

    assert done.returncode == 2
    assert done.stderr.startswith(f"godwit: no broker at {url}: ")
    assert done.stderr.count("\n") == 1


def test_explain_says_why_and_its_exit_code_says_whether() -> None:
    matches, fails = run("explain", "n > 5", "[n,6]"), run("explain", "n > 5", '{"n": 5}')

    assert (matches.returncode, matches.stdout.splitlines()[0]) == (0, "matches")
    assert fails.returncode == 1
    assert fails.stdout == "does not match\n  n > 5 fails: n is 5\n"


def test_explain_answers_in_json() -> None:
    done = run("explain", "n > 5 and m = 1", '{"n": 5, "m": 1}', "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout) == {"matches": False, "failures": ["n > 5 fails: n is 5"]}


# -- networks ----------------------------------------------------------------------------------


def free_ports_from(count: int) -> int:
    """The first of some free ports in a row, which no connection takes by chance."""
    while True:
        first = free_port()
        with suppress(OSError), ExitStack() as taken:
            for port in range(first, first + count):
                taken.enter_context(socket.create_server(("127.0.0.1", port)))
            return first


def test_a_network_file_is_run_and_simulated(tmp_path: Path) -> None:
    """topology prints it, up runs it, pub and sub use it, simulate simulates it."""
    path = tmp_path / "net.toml"
    printed = run("topology", "chain", "--brokers", "3", "--port", str(free_ports_from(3)))
    assert printed.returncode == 0
    path.write_text(printed.stdout)

    with started("up", str(path)) as up:
        assert up.stdout
        lines = [up.stdout.readline() for _ in range(6)]
        assert lines[0] == "starting 3 brokers ...\n", up.stderr and up.stderr.read()
        assert lines[-1] == "all are linked; Ctrl-C stops them\n"
        urls = [line.split()[1] for line in lines[1:4]]
        name, dashboard = lines[4].split()
        assert (name, dashboard[:17]) == ("dashboard", "http://127.0.0.1:")
        story = run("why", "[n,2]", "--broker", "B3", "--to", "alice", "--at", dashboard)
        assert (story.returncode, story.stdout.split("\n")[0]) == (1, "alice: unknown subscriber")
        with subscribed(urls[0], "n > 1", "--count", "1", "--json") as alice:
            assert run("pub", urls[2], "[n,1]", "[n,2]").returncode == 0
            event = json.loads(alice.communicate(timeout=30)[0])
        assert (event["content"], event["hops"]) == ({"n": 2}, 2)
        up.send_signal(signal.SIGINT)
        _, errors = up.communicate(timeout=30)
        assert (up.returncode, errors) == (0, "")

    policy = '\n[placement]\npolicy = "grape"\npublications_per_session = 10\n'
    path.write_text(printed.stdout + policy)
    done = run("simulate", str(path), "--minutes", "1.5")
    assert done.returncode == 0, done.stderr
    for words in ("publications", "every one", "delay, ms", "moves of publishers", "B1", "B3"):
        assert words in done.stdout


def test_clusters_are_printed_and_simulated(tmp_path: Path) -> None:
    path = tmp_path / "net.toml"
    printed = run("topology", "clusters", "--brokers", "12", "--clusters", "3")
    assert printed.returncode == 0, printed.stderr
    assert 'overlay = "clusters"\nclusters = 3\n' in printed.stdout
    path.write_text(printed.stdout)

    done = run("simulate", str(path), "--minutes", "1.5")
    assert done.returncode == 0, done.stderr
    assert "every one" in done.stdout


# -- plays -------------------------------------------------------------------------------------


def test_the_demo_ends_with_a_table_and_checks_every_delivery() -> None:
    done = run("demo", "--brokers", "3", "--seconds", "2")

    assert done.returncode == 0, done.stderr
    for words in ("publications", "deliveries", "every one", "delay, ms", "hops", "B1"):
        assert words in done.stdout


def test_replay_shows_what_came_of_a_seed() -> None:
    done = run("replay", "7")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("seed 7:")
    assert "0 violations" in done.stdout


def test_a_wrong_option_is_one_clear_error() -> None:
    done = run("demo", "--seconds", "never")

    assert done.returncode == 2
    assert "Invalid value for '--seconds'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("demo", "--seconds", "600"), ("simulate", "--minutes", "60")])
def test_ctrl_c_stops_a_play_without_a_traceback(command: tuple[str, ...]) -> None:
    with started(*command) as process:
        assert process.stdout
        process.stdout.readline()  # It has begun.
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "Traceback" not in errors


# -- help --------------------------------------------------------------------------------------


def commands(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and all below it, by their words on the command line."""
    yield path, command
    if isinstance(command, TyperGroup):
        for name, below in subcommands(command).items():
            yield from commands(below, *path, name)


def test_every_command_and_every_option_has_a_help_text() -> None:
    found = dict(commands(typer.main.get_command(app)))
    assert ("channel", "skip") in found
    for path, command in found.items():
        assert command.help, path
        for parameter in command.params:
            if not parameter.hidden:
                assert (parameter.help or "").endswith((".", "...")), (path, parameter.name)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("pub",), "[attribute,value],..."),
        (("up",), "[services.datacluster]"),
        (("lab", "run"), "local[*]"),
        (("datacluster",), "local[N]"),
    ],
)
def test_brackets_are_shown_in_help(path: tuple[str, ...], shown: str) -> None:
    """Typer would take them for markup."""
    done = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    assert shown in done.output
