"""Continue one simulation in several ways, each from the same state.

    simulator.run(until_s=60.0)                       # set-up: everybody has subscribed
    results = fork(simulator, {
        "nothing": lambda fork: finish(fork),
        "grape": lambda fork: finish(fork, modules=grape_modules),
    })

Each branch runs in a child process that starts as a copy of this one, so the set-up of a large
network is paid once, and the branches cannot influence each other.  What a branch returns is
pickled.  POSIX only.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, Pipe
from typing import Any, NoReturn, TypeVar

from godwit.errors import GodwitError
from godwit.simulation.simulator import Simulator

T = TypeVar("T")


class BranchError(GodwitError):
    """A branch raised an exception, or its process died."""


def fork(
    simulator: Simulator, branches: Mapping[str, Callable[[Simulator], T]], *, jobs: int = 1
) -> dict[str, T]:
    """Run every branch on a copy of `simulator`, `jobs` at a time; return results by name."""
    results: dict[str, T] = {}
    waiting = dict(branches)
    running: dict[str, _Child] = {}
    gc.freeze()  # A collection in a branch would touch, and so copy, all that is shared.
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = next(iter(waiting))
                running[name] = _Child(waiting.pop(name), simulator)
            name = next(iter(running))
            results[name] = running.pop(name).result(name)
    finally:
        gc.unfreeze()
        for child in running.values():
            child.end()
    return {name: results[name] for name in branches}


class _Child:
    """One branch in its process.

    Not a process of `multiprocessing`: workers of the laboratory are daemons, which may have none.
    """

    def __init__(self, branch: Callable[[Simulator], object], simulator: Simulator) -> None:
        self._receiver, sender = Pipe(duplex=False)
        leash, self._leash = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(self._leash)
            self._receiver.close()
            threading.Thread(target=_end_with_parent, args=(leash,), daemon=True).start()
            _run(branch, simulator, sender)
        os.close(leash)
        sender.close()

    def result(self, name: str) -> Any:
        try:
            is_done, result = self._receiver.recv()
        except EOFError:
            status = os.waitstatus_to_exitcode(self._wait())
            raise BranchError(f"branch {name}: its process died, exit {status}") from None
        self._wait()
        if not is_done:
            raise BranchError(f"branch {name} failed:\n{result}")
        return result

    def _wait(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        os.close(self._leash)
        self._receiver.close()
        return status

    def end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        self._wait()


def _run(
    branch: Callable[[Simulator], object], simulator: Simulator, sender: Connection
) -> NoReturn:
    """In the child: it ends here, whatever the branch does."""
    try:
        try:
            sender.send((True, branch(simulator)))
        except Exception:  # noqa: BLE001  The parent raises it.
            sender.send((False, traceback.format_exc()))
        sender.close()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)


def _end_with_parent(leash: int) -> None:
    """The other end is closed when the parent is gone."""
    os.read(leash, 1)
    os._exit(1)
