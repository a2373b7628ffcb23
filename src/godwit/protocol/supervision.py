"""Activities that must not end, whatever goes wrong in them.

`Supervisor.run` repeats an asynchronous step until it is cancelled.  It survives every error: those
that were expected are logged in one line, all others with their traceback; then it waits with
back-off and goes on.  `survive` is the same for one step, in a thread or in a loop with waits of
its own.

V1  Only cancellation, and what else is not an `Exception`, ends `run`.
V2  An expected error is logged once until `recover`, however often it is repeated.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import NoReturn

from godwit.errors import GodwitError
from godwit.protocol.backoff import Backoff

#: Different errors that are remembered as logged (V2).
LOGGED_MAX = 8


class Supervisor:
    """Runs the steps of one activity, and keeps its present trouble for health checks."""

    def __init__(
        self,
        log: logging.Logger,
        event: str,
        *,
        trouble: str | None = None,
        expected: tuple[type[Exception], ...] = (GodwitError, OSError),
        level: int = logging.WARNING,
        **facts: object,
    ) -> None:
        """`event` and `facts` are what is logged beside an error, an expected one at `level`.

        An activity that starts with a `trouble` has not worked yet: until it does, expected errors
        are only information.
        """
        self.trouble = trouble
        """Why the activity does not work; None if it does."""
        self._log = log
        self._event = event
        self._facts = facts
        self._expected = expected
        self._level = level
        self._has_worked = trouble is None
        self._logged: deque[str] = deque(maxlen=LOGGED_MAX)

    async def run(
        self, step: Callable[[], Awaitable[None]], backoff: Backoff | None = None
    ) -> NoReturn:
        """Repeat `step` until cancelled.  A step that returns resets the back-off."""
        backoff = backoff or Backoff()
        while True:
            try:
                await step()
            except Exception as error:  # noqa: BLE001  See V1.
                self.fail(error)
                await backoff.wait()
            else:
                backoff.reset()

    def recover(self) -> None:
        """The activity works."""
        self.trouble = None
        self._has_worked = True
        self._logged.clear()

    def fail(self, error: Exception) -> None:
        """Log an error and remember it as the present trouble."""
        if not isinstance(error, self._expected):
            self._log.error(self._event, exc_info=error, extra=self._facts)
            self.trouble = f"{type(error).__name__}: {error}"
            return
        self.trouble = str(error) or type(error).__name__
        if self.trouble not in self._logged:
            self._logged.append(self.trouble)
            level = self._level if self._has_worked else logging.INFO
            self._log.log(level, self._event, extra={**self._facts, "error": self.trouble})


@contextlib.contextmanager
def survive(log: logging.Logger, event: str, **facts: object) -> Iterator[None]:
    """Log an error of the block with its traceback, and go on after it."""
    try:
        yield
    except Exception:
        log.exception(event, extra=facts)
