"""Executes channels when they are due: periodically, or after every ingest batch.

S1  Missed periods are made up by one execution, not several.
S2  A channel that fails is retried with back-off, and does not delay others.
S3  Executions that were planned before a crash run first.

Channels that are due together run one after the other, the longest overdue first: Spark uses all
cores for each.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from godwit.datacluster.channels.channel_definitions import KnownChannel
from godwit.datacluster.channels.channel_service import ChannelService
from godwit.datacluster.channels.executions import ExecutionOutcome
from godwit.protocol.backoff import backoff_s
from godwit.protocol.supervision import survive

log = logging.getLogger("godwit.channels")

BACKOFF_S = 2.0
BACKOFF_S_MAX = 300.0
TIDY_EVERY_S = 60.0
#: The longest sleep when nothing is due; new channels are noticed after it.
NAP_S_MAX = 1.0


@dataclass(slots=True)
class _Turn:
    due_s: float | None
    """None for a continuous channel without new batches."""

    failures: int = 0


class Scheduler:
    def __init__(self, channels: ChannelService, *, clock: Callable[[], float] = time.time) -> None:
        self._channels = channels
        self._clock = clock
        self._turns: dict[int, _Turn] = {}
        self._fed: set[str] = set()
        self._skipped: set[int] = set()
        self._tidy_s = 0.0
        self._awake = threading.Condition()
        self._is_stopping = False
        self._thread: threading.Thread | None = None

    # -- the thread ----------------------------------------------------------------------------

    def start(self) -> None:
        self._thread = threading.Thread(target=self._loop, name="channels")
        self._thread.start()

    def stop(self) -> None:
        """Stop; waits for the current execution."""
        with self._awake:
            self._is_stopping = True
            self._awake.notify()
        if self._thread is not None:
            self._thread.join()

    def on_batch(self, dataset: str, batch: int) -> None:
        """A batch was ingested: continuous channels that read the dataset are due."""
        with self._awake:
            self._fed.add(dataset.lower())
            self._awake.notify()

    def on_skip(self, channel_id: int) -> None:
        """An execution was skipped: the channel is scheduled as if it were new."""
        with self._awake:
            self._skipped.add(channel_id)
            self._awake.notify()

    def _loop(self) -> None:
        while not self._is_stopping:
            with survive(log, "scheduler"):
                self.run_due(self._clock())
            with self._awake:
                if not (self._is_stopping or self._fed or self._skipped):
                    self._awake.wait(self._nap_s(self._clock()))

    def _nap_s(self, now_s: float) -> float:
        dues = [turn.due_s for turn in self._turns.values() if turn.due_s is not None]
        return max(0.0, min([NAP_S_MAX, *(due_s - now_s for due_s in dues)]))

    # -- one round -----------------------------------------------------------------------------

    def run_due(self, now_s: float) -> list[ExecutionOutcome]:
        """Execute all channels that are due; their outcomes."""
        if self._channels.is_down:
            return []  # They are due as soon as Spark is back.
        known = {each.id: each for each in self._channels.all()}
        self._look_around(known, now_s)
        due = sorted(
            (turn.due_s, id)
            for id, turn in self._turns.items()
            if turn.due_s is not None and turn.due_s <= now_s
        )
        outcomes: list[ExecutionOutcome] = []
        begun_s = time.perf_counter()
        for _, id in due:
            if self._is_stopping:
                break
            # Records have been accepted while others ran: the moment must not be before that.
            moment_s = now_s + (time.perf_counter() - begun_s if outcomes else 0.0)
            outcome = self._execute(known[id], now_s, moment_s)
            if outcome is not None:
                outcomes.append(outcome)
        if now_s >= self._tidy_s:
            self._tidy_s = now_s + TIDY_EVERY_S
            self._channels.tidy(now_s=now_s)
        return outcomes

    def _look_around(self, known: dict[int, KnownChannel], now_s: float) -> None:
        """Take note of new and dropped channels, new batches and skipped executions."""
        with self._awake:
            fed, self._fed = self._fed, set()
            skipped, self._skipped = self._skipped, set()
        for id in (self._turns.keys() - known.keys()) | (self._turns.keys() & skipped):
            del self._turns[id]
        concerned = {name for dataset in fed for name in self._channels.reading(dataset)}
        for id, each in known.items():
            turn = self._turns.get(id)
            if turn is None:
                turn = self._turns[id] = _Turn(self._first_s(each, now_s))
            if each.channel.is_continuous and each.channel.name in concerned and not turn.failures:
                turn.due_s = now_s

    def _first_s(self, known: KnownChannel, now_s: float) -> float:
        every_s = known.channel.every_s
        if every_s is None or self._channels.has_planned(known.channel.name):  # S3
            return now_s
        return self._after(known.created_s, every_s, now_s)

    def _after(self, due_s: float, every_s: float, now_s: float) -> float:
        """The next period after now (S1)."""
        missed = max(0, int((now_s - due_s) // every_s))
        return due_s + (missed + 1) * every_s

    def _execute(
        self, known: KnownChannel, now_s: float, moment_s: float
    ) -> ExecutionOutcome | None:
        """`now_s` is the time of the round, `moment_s` that of the execution."""
        turn = self._turns[known.id]
        assert turn.due_s is not None, "it is due"
        error, outcome = None, None
        try:
            outcome = self._channels.execute(known.channel.name, now_s=moment_s)
            error = None if outcome is None else outcome.error
        except Exception as raised:  # noqa: BLE001  Other channels go on.
            error = str(raised)
        every_s = known.channel.every_s
        if error is not None:  # S2
            turn.failures += 1
            wait_s = backoff_s(turn.failures, first_s=BACKOFF_S, max_s=BACKOFF_S_MAX)
            turn.due_s = now_s + max(wait_s, every_s or 0.0)
            log.warning("channel failed", extra={"channel": known.channel.name, "error": error})
            return outcome
        turn.failures = 0
        if every_s is not None:
            turn.due_s = self._after(turn.due_s, every_s, now_s)
        else:  # Batches may have arrived during the execution, or while it failed.
            turn.due_s = None if outcome is None else now_s
        return outcome
