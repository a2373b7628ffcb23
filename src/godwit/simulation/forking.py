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

import multiprocessing
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from godwit.errors import GodwitError
from godwit.simulation.simulator import Simulator

T = TypeVar("T")


class BranchError(GodwitError):
    """A branch raised an exception, or its process died."""


def fork(
    simulator: Simulator, branches: Mapping[str, Callable[[Simulator], T]], *, jobs: int = 1
) -> dict[str, T]:
    """Run every branch on a copy of `simulator`, `jobs` at a time; return results by name."""
    context = multiprocessing.get_context("fork")
    results: dict[str, T] = {}
    waiting = dict(branches)
    running: dict[str, tuple[BaseProcess, Connection]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = next(iter(waiting))
                receiver, sender = context.Pipe(duplex=False)
                child = context.Process(
                    target=_run, args=(waiting.pop(name), simulator, sender), daemon=True
                )
                child.start()
                sender.close()
                running[name] = child, receiver
            name = next(iter(running))
            results[name] = _result(name, *running[name])
            del running[name]
    finally:
        for process, _ in running.values():
            process.terminate()
            process.join()
    return {name: results[name] for name in branches}


def _run(branch: Callable[[Simulator], T], simulator: Simulator, sender: Connection) -> None:
    try:
        sender.send((True, branch(simulator)))
    except Exception:  # noqa: BLE001  The parent raises it.
        sender.send((False, traceback.format_exc()))
    finally:
        sender.close()


def _result(name: str, process: BaseProcess, receiver: Connection) -> Any:
    try:
        is_done, result = receiver.recv()
    except EOFError:
        process.join()
        raise BranchError(f"branch {name}: its process died, exit {process.exitcode}") from None
    process.join()
    if not is_done:
        raise BranchError(f"branch {name} failed:\n{result}")
    return result
