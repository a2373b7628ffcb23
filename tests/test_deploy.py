"""examples/deploy: units, image and compose file, as far as a machine without them can tell."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.asynchronous import run
from tests.cli.test_cli import GODWIT
from tests.command_tree import subcommands

from godwit.cli import app
from godwit.runtime.broker_orders import LEFT
from godwit.runtime.processes import LINKED, free_port
from godwit.runtime.settings import load_network

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "examples" / "deploy"
UNITS = {"godwit-broker@.service": "godwit-broker@B1.service", "godwit-up.service": None}
COMPOSE = (DEPLOY / "compose.yaml").read_text()
#: The words behind `godwit` in each service of the compose file.
COMMANDS: list[list[str]] = [
    json.loads(found) for found in re.findall(r"^    command: (\[.*\])$", COMPOSE, re.MULTILINE)
]


def settings_of(unit: str, key: str) -> list[str]:
    text = (DEPLOY / unit).read_text()
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


def check_command(words: list[str]) -> None:
    """The command and its options exist."""
    group: Any = typer.main.get_command(app)
    command = subcommands(group)[words[0]]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_starts_a_command_that_exists(unit: str) -> None:
    (line,) = settings_of(unit, "ExecStart")
    program, *words = shlex.split(line)
    assert program == "/opt/godwit/bin/godwit"
    check_command(words)
    assert settings_of(unit, "Restart") == ["always"]


def test_a_unit_of_a_broker_restarts_it_without_goodbye() -> None:
    unit = "godwit-broker@.service"
    assert settings_of(unit, "ExecReload") == ["/bin/kill -HUP $MAINPID"]
    assert settings_of(unit, "RestartPreventExitStatus") == [str(LEFT)]
    assert settings_of(unit, "Environment") == ["GODWIT_SUPERVISED=1"]
    assert settings_of(unit, "RestartKillSignal") == ["SIGHUP"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
@pytest.mark.parametrize(("unit", "instance"), UNITS.items())
def test_systemd_understands_a_unit(unit: str, instance: str | None, tmp_path: Path) -> None:
    """With a program that exists here in the place of Godwit's."""
    text = (DEPLOY / unit).read_text().replace("/opt/godwit/bin/godwit", sys.executable)
    path = tmp_path / (instance or unit)
    path.write_text(text)
    done = subprocess.run(  # noqa: S603  Ourselves.
        ["systemd-analyze", "verify", "--man=no", str(path)],  # noqa: S607
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    assert (done.returncode, said) == (0, [])


def test_the_image_is_built_from_files_that_are_enough(tmp_path: Path) -> None:
    text = (DEPLOY / "Containerfile").read_text()
    copied = [line.split()[1:] for line in text.splitlines() if line.startswith("COPY")]
    assert copied
    for *sources, target in copied:
        folder = tmp_path / target.removeprefix("/")
        for source in sources:
            path = ROOT / source
            if path.is_dir():
                shutil.copytree(path, folder, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, folder)
    assert 'pip install --no-cache-dir "/src${EXTRAS}"' in text
    subprocess.run(  # noqa: S603  What pip does in the image, without a network.
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "out")],
        cwd=tmp_path / "src", check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    assert len(list((tmp_path / "out").glob("godwit_pubsub-*.whl"))) == 1


def test_the_compose_file_runs_every_broker_of_the_network_file() -> None:
    network = load_network(DEPLOY / "net.toml")
    ids = [words[words.index("--id") + 1] for words in COMMANDS]
    assert ids == [broker.id for broker in network.broker]
    for words in COMMANDS:
        check_command(words)
    services = re.findall(r"^  (\w+):$", COMPOSE.partition("\nservices:\n")[2], re.MULTILINE)
    for broker, service in zip(network.broker, services, strict=True):
        assert broker.address == f"{service}:7400", "the name of its container"
        for link in broker.links:  # It listens everywhere, and is called at its own address.
            assert network.dialled_address(link) == (link.lower(), 7400)


def test_the_commands_of_the_compose_file_run_and_are_healthy(tmp_path: Path) -> None:
    """In processes of this machine: ports of their own instead of addresses of their own."""
    text, ports = (DEPLOY / "net.toml").read_text(), {}
    for broker in ("b1", "b2", "b3"):
        port, ports[broker] = free_port(), free_port()
        text = text.replace("0.0.0.0:7400", f"127.0.0.1:{port}", 1)
        text = text.replace("0.0.0.0:8400", f"127.0.0.1:{ports[broker]}", 1)
        text = text.replace(f"{broker}:7400", f"127.0.0.1:{port}")
    (tmp_path / "net.toml").write_text(text)
    (check,) = re.findall(r"^    test: (\[.*\])$", COMPOSE, re.MULTILINE)
    healthcheck = json.loads(check)[3]

    async def scenario() -> None:
        pipe = asyncio.subprocess.PIPE
        started = []
        try:
            for words in COMMANDS:
                here = [str(tmp_path / "net.toml") if "/" in word else word for word in words]
                process = await asyncio.create_subprocess_exec(
                    *GODWIT, *here, "--log-level", "error", stdout=pipe
                )
                started.append(process)
                assert process.stdout
                async for line in process.stdout:
                    if LINKED.encode() in line:
                        break
            for port in ports.values():
                code = healthcheck.replace("8400", str(port))
                checking = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
                assert await checking.wait() == 0
        finally:
            for process in started:
                process.send_signal(signal.SIGHUP)
            codes = [await process.wait() for process in started]
        assert codes == [0, 0, 0]

    run(scenario(), within_s=60.0)
