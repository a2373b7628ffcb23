"""One thread that does what takes time, in the order in which it was asked for.

Arrow encodes, compresses and writes without Python's global lock, so where there is a second
processor a trace is written while the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
from threading import Thread
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]

#: So many actions wait, and with them the rows that they are to write; then they are enough.
ENOUGH = 2


class Background:
    def __init__(self) -> None:
        self._actions: Queue[Action | None] = Queue(ENOUGH + 1)  # One more: the word to end.
        self._error: BaseException | None = None
        # A daemon: a run that fails does not wait for a trace that nobody closes.
        self._thread = Thread(target=self._work, name="trace", daemon=True)

    @property
    def is_busy(self) -> bool:
        """Whether enough is waiting, and more would have to wait before it may wait."""
        return self._actions.qsize() >= ENOUGH

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def run(self, action: Action) -> bool:
        """Have it done; wait if too much waits already.  Raises what went wrong meanwhile."""
        self._raise()
        if self._thread.ident is None:
            self._thread.start()
        self._actions.put(action)
        return True

    def end(self) -> None:
        """Nothing more will be asked for."""
        self._actions.put(None)

    def finish(self) -> None:
        """Wait until all is done."""
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
            except BaseException as error:  # noqa: BLE001  It is raised where it can be caught.
                self._error = error
