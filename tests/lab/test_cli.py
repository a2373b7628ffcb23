"""`godwit lab`, run as a user runs it.  Its example of an experiment is that of docs/lab.md."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_cli import GODWIT, run
from tests.lab.test_workers import until
from tests.test_readme import blocks
from typer.testing import CliRunner

from godwit.cli import app
from godwit.distribution import install_hint
from godwit.errors import UsageError
from godwit.experiments import EXPERIMENTS


def test_what_there_is_is_listed() -> None:
    shown, data = run("lab", "list"), run("lab", "list", "--json")

    listed = {each["experiment"]: each for each in json.loads(data.stdout)}
    assert listed.keys() == EXPERIMENTS.keys()
    for name, experiment in EXPERIMENTS.items():
        assert name in shown.stdout
        assert listed[name]["scales"].keys() == experiment.scales.keys()
        assert len(listed[name]["claims"]) == len(experiment.claims)


def test_the_experiment_of_the_documentation_runs(tmp_path: Path) -> None:
    """From a file, through processes and Spark, to one JSON object; and from the cache."""
    (example,) = blocks("python", "docs/lab.md")
    (tmp_path / "wider.py").write_text(example)
    command = ("lab", "run", str(tmp_path / "wider.py"), "--cache", str(tmp_path / "cache"))

    done = run(*command, "--json", timeout_s=300.0)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["experiment"], found["scale"], found["seeds"]) == ("wider", "small", [1, 2])
    hops = [of["values"]["hops_mean"] for of in found["metrics"]]
    assert [of["case"] for of in found["metrics"]] == [{"brokers": n} for n in (3, 7, 15)]
    assert {each["n"] for each in hops} == {2}
    assert 0 < hops[0]["mean"] < hops[2]["mean"] < 6
    assert [claim["verdict"] for claim in found["claims"]] == ["reproduced"]
    assert "wider: 6/6  brokers=" in done.stderr

    again = run(*command, "--seed", "2", "--case", "brokers=7")
    assert again.returncode == 0, again.stderr
    assert "1 of them complete already" in again.stderr
    of_seed = {round(hops[1][end], 3) for end in ("min", "max")}
    (line,) = (line for line in again.stdout.splitlines() if "hops_mean" in line)
    assert round(float(line.split("│")[2]), 3) in of_seed


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run", "nothing"), "unknown experiment 'nothing'; choose from static-tree, "),
        (("run", "nothing.py"), "cannot read nothing.py: no such file"),
        (("run", "static-tree", "--scale", "huge"), "no scale 'huge'; choose from small, paper"),
        (("run", "static-tree", "--case", "x"), "--case x: write PARAMETER=VALUE"),
        (("run", "static-tree", "--case", "x=0"), "no case of static-tree at the scale small has"),
        (("run", "static-tree", "--seed", "1", "--seeds", "2"), "--seeds and --seed exclude"),
        (("report", "nothing"), "unknown experiment 'nothing'"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    result = CliRunner().invoke(app, ["lab", *arguments])

    assert isinstance(result.exception, UsageError)  # `main` makes it a line and exit code 2.
    assert sentence in str(result.exception)
    assert "\n" not in str(result.exception)


def test_without_the_extra_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None; sys.argv = ['godwit', 'lab', 'list'];"
        "from godwit.cli import main; main()"
    )
    done = subprocess.run(  # noqa: S603  Ourselves.
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 2
    assert done.stderr == f"godwit: the lab needs the package pyspark: {install_hint('lab')}\n"


def test_the_command_line_does_not_wait_for_spark() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "godwit", "lab", "--help"]
    done = subprocess.run(  # noqa: S603  Ourselves.
        command, capture_output=True, text=True, timeout=60, check=True
    )

    assert "godwit.cli" in done.stderr
    for library in ("pyspark", "matplotlib", "pyarrow", "pandas"):
        assert library not in done.stderr


def marked(mark: str) -> dict[int, str]:
    """The processes that run with a mark in their environment, and their commands."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_text(errors="replace"):
                found[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # It has just ended, or is not ours.
    return found


def test_ctrl_c_stops_everything(tmp_path: Path) -> None:
    """Processes, Java, brokers."""
    command = [*GODWIT, "lab", "run", "static-tree", "--cache", str(tmp_path)]
    mark = f"GODWIT_TEST={tmp_path}"
    with subprocess.Popen(  # noqa: S603  Ourselves.
        command,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "GODWIT_TEST": str(tmp_path)},
    ) as process:
        try:
            # A worker plays a live run through brokers, and Spark is starting.
            assert until(lambda: sum(" broker " in c for c in marked(mark).values()) >= 2)
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            assert until(lambda: not marked(mark)), marked(mark)
        finally:
            for pid in marked(mark):  # Whatever is wrong, nothing stays behind this test.
                os.kill(pid, signal.SIGKILL)

    assert process.returncode == 130
    assert "Traceback" not in errors
    assert list(tmp_path.glob("*/*/result.json")) == []
