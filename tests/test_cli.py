"""The command line, run as a user runs it: in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

GODWIT = [sys.executable, "-m", "godwit"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*GODWIT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603  ourselves


def test_the_demo_ends_with_a_table_and_checks_every_delivery() -> None:
    done = run("demo", "--brokers", "7", "--minutes", "1.5")

    assert done.returncode == 0, done.stderr
    for words in ("publications", "deliveries", "every one", "delay, ms", "hops", "B1"):
        assert words in done.stdout


def test_replay_shows_what_came_of_a_seed() -> None:
    done = run("replay", "7")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("seed 7:")
    assert "0 violations" in done.stdout


def test_a_wrong_option_is_one_clear_error() -> None:
    done = run("demo", "--minutes", "never")

    assert done.returncode == 2
    assert "Invalid value for '--minutes'" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_overlay_is_one_clear_sentence() -> None:
    done = run("replay", "7", "--overlay", "ring")

    assert done.returncode == 2
    assert done.stderr == "godwit: no overlay 'ring'; choose from ['tree']\n"


def test_ctrl_c_stops_the_demo_at_once_and_without_a_traceback() -> None:
    process = subprocess.Popen(  # noqa: S603  ourselves
        [*GODWIT, "demo", "--minutes", "60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    process.stdout.readline()  # It has begun.
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "Traceback" not in errors
