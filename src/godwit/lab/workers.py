"""Does things in several processes, and knows of each what became of it.

Not an executor of the standard library: those cannot say which thing killed its process, and do
not let go of what is under way.  Here, whoever stops asking ends the processes.  They end by
themselves if this process is killed.
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

#: For a process that was told to end.
END_S = 5.0


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, in a sentence and in full."""

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
    things: Iterable[tuple[T, Callable[[], None]]], *, jobs: int
) -> Generator[tuple[T, Failure | None]]:
    """Do each thing, `jobs` at a time; its name comes back when it is done, or went wrong.

    What is to be done can be pickled: a function of a module, or a partial of one.  It is asked
    for when a process is free.
    """
    left = iter(things)
    workers: list[_Worker] = []
    busy: dict[Connection, tuple[_Worker, T]] = {}

    def hand_out(worker: _Worker | None) -> None:
        """Give the worker, or a new one, the next thing; if there is one."""
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
    theirs.close()  # Else we would not notice that the process has ended.
    return _Worker(process, ours)


def _died(worker: _Worker) -> Failure:
    worker.process.join(END_S)
    code = worker.process.exitcode or 0
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return Failure(f"its process ended {how}")


def _work(connection: Connection) -> None:
    """The life of a process: do what is handed in, one thing after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is our parent's to handle.
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
        except Exception as error:  # noqa: BLE001  Whatever it is, somebody wants to know.
            sentence = f"{type(error).__name__}: {error}"
            connection.send(Failure(sentence, traceback.format_exc()))
        else:
            connection.send(None)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
