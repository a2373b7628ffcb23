"""Runs tasks in several processes, and reports the outcome of each.

The executors of the standard library do not report which task killed its process, and cannot
abandon running tasks.  Here, closing the generator ends the processes; they also end if this
process is killed.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TypeVar

from godwit.errors import GodwitError

T = TypeVar("T")

#: Time for a terminated process to exit.
END_S = 5.0


@dataclass(frozen=True, slots=True)
class Failure:
    """An error, as a sentence and as a traceback."""

    sentence: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class _Worker:
    process: SpawnProcess
    connection: Connection

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join(END_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()


def in_processes(
    tasks: Iterable[tuple[T, Callable[[], None]]], *, jobs: int
) -> Generator[tuple[T, Failure | None]]:
    """Run each task, `jobs` at a time; yields its name when it is done or failed.

    Tasks must be picklable: functions of a module, or partials of these.  The next task is taken
    from the iterable when a process is free.
    """
    left = iter(tasks)
    workers: list[_Worker] = []
    busy: dict[Connection, tuple[_Worker, T]] = {}

    def hand_out(worker: _Worker | None) -> None:
        """Give the next task, if any, to this worker or to a new one."""
        for name, do in left:
            if worker is None:
                worker = _start()
                workers.append(worker)
            worker.connection.send(do)
            busy[worker.connection] = worker, name
            return

    try:
        for _ in range(jobs):
            hand_out(None)
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                worker, name = busy.pop(connection)
                try:
                    failure = connection.recv()
                except (EOFError, ConnectionError):
                    failure = _died(worker)
                yield name, failure
                hand_out(worker if worker.process.is_alive() else None)
    finally:
        for worker in workers:
            worker.end()


def _start() -> _Worker:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # Otherwise the end of the process would go unnoticed.
    return _Worker(process, ours)


def _died(worker: _Worker) -> Failure:
    worker.process.join(END_S)
    code = worker.process.exitcode or 0
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return Failure(f"its process ended {how}")


def _work(connection: Connection) -> None:
    """The main function of a process: run tasks one after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The parent handles Ctrl-C.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            do = connection.recv()
        except EOFError:
            return
        try:
            do()
        except GodwitError as error:
            connection.send(Failure(str(error), traceback.format_exc()))
        except Exception as error:  # noqa: BLE001  Reported to the parent.
            sentence = f"{type(error).__name__}: {error}"
            connection.send(Failure(sentence, traceback.format_exc()))
        else:
            connection.send(None)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
