"""A real standalone cluster of Spark on this machine: a master and two workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from godwit.spark.java import java_home

SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = ("--host", "127.0.0.1", "--webui-port", "0")


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """The address of its master.  Its processes live in the folder, and end with the cluster."""
    of_worker = (*LOOPBACK, "--cores", "1", "--memory", "1g", "--work-dir")
    of_master = (*LOOPBACK, "--port", "0")
    with _daemons("master.Master", of_master, until=r"spark://[\d.:]+") as (master,):
        workers = [(*of_worker, str(folder / name), master) for name in ("one", "two")]
        with _daemons("worker.Worker", *workers, until="Successfully registered"):
            yield master
            assert len(_processes_of(master, folder)) >= 2
    assert _processes_of(master, folder) == []


@contextmanager
def _daemons(kind: str, *each: tuple[str, ...], until: str) -> Iterator[list[str]]:
    """Processes of the cluster; what they say when they are ready."""
    environment = {
        **os.environ,
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


def _processes_of(master: str, folder: Path) -> list[str]:
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
