"""The metrics on a real standalone cluster, a master and two workers: the same, unchanged.

The sums of a cluster are added up in the order in which its parts are ready, so their last digit
may differ.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from tests.lab.collecting import all_metrics
from tests.lab.plain import assert_same

from godwit.spark.java import java_home

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = ("--host", "127.0.0.1", "--webui-port", "0")
#: For the Javas of the cluster: jobs as short as these end before good code is compiled.
IN_HASTE = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@contextmanager
def daemons(kind: str, *each: tuple[str, ...], until: str) -> Iterator[list[str]]:
    """Processes of the cluster; what they say when they are ready."""
    environment = {
        **os.environ,
        **IN_HASTE,
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
    }
    command = (str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}")
    processes = [
        subprocess.Popen(  # noqa: S603  Our own.
            [*command, *arguments], env=environment, stderr=subprocess.PIPE, text=True
        )
        for arguments in each
    ]
    readers = []
    try:
        said = []
        for process in processes:
            said.append(_wait_for(process, until))
            assert process.stderr is not None
            readers.append(threading.Thread(target=process.stderr.read))  # So it never blocks.
            readers[-1].start()
        yield said
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(timeout=30)
        for reader in readers:
            reader.join(timeout=30)
        for process in processes:
            assert process.stderr is not None
            process.stderr.close()


def _wait_for(process: subprocess.Popen[str], until: str) -> str:
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        if found := re.search(until, line):
            return found[0]
        said += line
    raise AssertionError(f"it did not start:\n{said}")


def processes_of(master: str, folder: Path) -> list[str]:
    """Processes that were told of the master, or live in a worker's folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text()
            where = str((process / "cwd").resolve())
        except OSError:
            continue  # It has just ended, or is not ours.
        if master in command or where.startswith(str(folder)):
            found.append(command.replace("\0", " "))
    return found


def test_a_cluster_says_what_one_process_says(
    spark: SparkSession, traces: dict[int, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    of_worker = (*LOOPBACK, "--cores", "1", "--memory", "1g", "--work-dir")
    of_master = (*LOOPBACK, "--port", "0")
    with daemons("master.Master", of_master, until=r"spark://[\d.:]+") as (master,):
        workers = [(*of_worker, str(tmp_path / name), master) for name in ("one", "two")]
        with daemons("worker.Worker", *workers, until="Successfully registered"):
            program = (sys.executable, "-m", "tests.lab.collecting")
            ran = subprocess.run(  # noqa: S603  Our own.
                [*program, master, str(traces[1]), str(out)],
                cwd=ROOT, env={**os.environ, **IN_HASTE}, capture_output=True, text=True,
                timeout=400, check=False,
            )  # fmt: skip
            assert ran.returncode == 0, ran.stderr
            assert len(processes_of(master, tmp_path)) >= 2
    assert processes_of(master, tmp_path) == []
    found = json.loads(out.read_text())
    assert found["master"] == master
    assert found["executors"] == 2
    expected = all_metrics(spark, traces[1])
    assert found["metrics"].keys() == expected.keys()
    for name, rows in expected.items():
        assert_same(found["metrics"][name], rows)
