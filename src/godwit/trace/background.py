"""One thread that runs actions in order, beside the run.

Arrow encodes, compresses and writes without Python's global lock, so a second processor can write
the trace while the run continues.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
from threading import Thread
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]

#: Actions that may wait, each with the rows that it writes.
ENOUGH = 2


class Background:
    def __init__(self) -> None:
        self._actions: Queue[Action | None] = Queue(ENOUGH + 1)  # One more, for the end.
        self._error: BaseException | None = None
        # A daemon: a run that fails does not wait for a trace that is never closed.
        self._thread = Thread(target=self._work, name="trace", daemon=True)

    @property
    def is_busy(self) -> bool:
        """Whether as many actions wait as may; the last place is for the end."""
        return self._actions.qsize() >= ENOUGH

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def run(self, action: Action) -> bool:
        """Queue an action; block while the queue is full.  Raises the error of an earlier one."""
        self._raise()
        if self._thread.ident is None:
            self._thread.start()
        self._actions.put(action)
        return True

    def end(self) -> None:
        """No more actions will follow."""
        self._actions.put(None)

    def finish(self) -> None:
        """Wait until all actions are done."""
        self.end()
        if self._thread.ident is not None:
            self._thread.join()
        self._raise()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _work(self) -> None:
        while (action := self._actions.get()) is not None:
            try:
                action()
            except BaseException as error:  # noqa: BLE001  Raised by the next call.
                self._error = error
