"""Commands whose extra is not installed: one sentence that says what to do, and exit code 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from godwit.distribution import install_hint

STATEMENTS = "CREATE DATASET A (x INT); CREATE DATASET B (x INT);"
SERVICES = """
[[broker]]
id = "B1"
[services.datacluster]
folder = "data"
"""
SPARK_FROM = "spark_from = 10\nshuffle = 'greedy'\n"


def run_without(
    package: str, *arguments: str, stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`godwit` in an interpreter that has no such package."""
    program = f"import sys; sys.modules[{package!r}] = None; from godwit.cli import main; main()"
    return subprocess.run(  # noqa: S603  Ourselves.
        [sys.executable, "-c", program, *arguments],
        input=stdin, capture_output=True, text=True, timeout=120, check=False, cwd=cwd,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("package", "arguments", "extra"),
    [
        ("pyspark", ("datacluster",), "datacluster"),
        ("pyarrow", ("datacluster",), "datacluster"),
        ("sqlglot", ("datacluster",), "datacluster"),
        ("sqlglot", ("execute",), "datacluster"),
        ("pyspark", ("demo", "emergencies"), "datacluster"),
        ("pyarrow", ("up", "net.toml"), "datacluster"),
        ("pyspark", ("coordinator", "--config", "coordinator.toml"), "datacluster"),
        ("pyarrow", ("coordinator", "--config", "coordinator.toml"), "datacluster"),
        ("pyspark", ("lab", "list"), "lab"),
        ("pyarrow", ("lab", "run", "covering"), "lab"),
        ("matplotlib", ("lab", "report"), "lab"),
        ("pyarrow", ("broker", "--id", "B1", "--trace", "trace"), "lab"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else each,
)
def test_a_command_without_its_extra_says_so_in_one_sentence(
    package: str, arguments: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "net.toml").write_text(SERVICES)
    (tmp_path / "coordinator.toml").write_text(SPARK_FROM)
    done = run_without(package, *arguments, stdin=STATEMENTS, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("godwit: ")
    assert done.stderr.endswith(f"{install_hint(extra)}\n")
    assert f"needs the package {package}" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ("[services.coordinator]\nbad_key = 1\n", "`bad_key`"),
        ("[services.coordinator]\nreport_s = -1\n", "report_s"),
        ("[services.datacluster]\nfoldr = 'data'\n", "`foldr`"),
        ("[services.datacluster]\nmaster = 'yarn'\n", "is not a Spark master"),
    ],
)
def test_a_bad_key_of_a_service_is_blamed_on_the_users_file(
    table: str, complaint: str, tmp_path: Path
) -> None:
    (tmp_path / "net.toml").write_text(f'[[broker]]\nid = "B1"\n{table}')
    done = run_without("no_such_package", "up", "net.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"godwit: net.toml: {table.splitlines()[0]}: ")
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout, "before anything is started"
