"""Executes channels when they are due: periodically, or after every ingest batch.

S1  Missed periods are made up by one execution, not several.
S2  A channel that fails is retried with back-off, and does not delay others.
S3  Executions that were planned before a crash run first.
S4  Several channels run at a time, the longest overdue first; Spark shares its cores between them.
S5  An execution during which Spark has died runs alone: it may be the reason, and is the only one
    to be blamed if Spark dies again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
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
#: More of them are not faster, and each needs memory.
AT_ONCE = 3

Running = Future[ExecutionOutcome | None]


@dataclass(slots=True)
class _Turn:
    due_s: float | None
    """None for a continuous channel without new batches."""

    failures: int = 0
    is_running: bool = False
    is_alone: bool = False
    is_fed: bool = False
    """A batch has come while it was running."""


class Scheduler:
    def __init__(
        self,
        channels: ChannelService,
        *,
        at_once: int = AT_ONCE,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._channels = channels
        self._at_once = at_once
        self._clock = clock
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="channel")
        self._turns: dict[int, _Turn] = {}
        self._fed: set[str] = set()
        self._skipped: set[int] = set()
        self._has_ended = False
        """An execution; others may begin."""
        self._tidy_s = 0.0
        self._awake = threading.Condition()
        self._is_stopping = False
        self._thread: threading.Thread | None = None

    # -- the thread ----------------------------------------------------------------------------

    def start(self) -> None:
        self._thread = threading.Thread(target=self._loop, name="channels")
        self._thread.start()

    def stop(self) -> None:
        """Stop; waits for the current executions."""
        with self._awake:
            self._is_stopping = True
            self._awake.notify()
        if self._thread is not None:
            self._thread.join()
        self._pool.shutdown()

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
            now_s = self._clock()
            with survive(log, "scheduler"):
                self._begin_due(now_s)
                self._tidy(now_s)
            with self._awake:
                if not (self._is_stopping or self._fed or self._skipped or self._has_ended):
                    self._awake.wait(max(0.0, self._next_s(now_s) - self._clock()))

    def _next_s(self, now_s: float) -> float:
        """When to look again.  What is due and has not begun waits for the end of others."""
        dues = [turn.due_s for turn in self._turns.values() if turn.due_s is not None]
        return min([now_s + NAP_S_MAX, *(due_s for due_s in dues if due_s > now_s)])

    # -- one round -----------------------------------------------------------------------------

    def run_due(self, now_s: float) -> list[ExecutionOutcome]:
        """Execute all channels that are due, each once, and wait for them; their outcomes."""
        outcomes: list[ExecutionOutcome] = []
        ran: set[int] = set()
        begun_s, waited_s = time.perf_counter(), 0.0
        while begun := self._begin_due(now_s + waited_s, but=ran):
            ran |= begun.keys()
            found = [running.result() for running in begun.values()]
            outcomes += [outcome for outcome in found if outcome is not None]
            waited_s = time.perf_counter() - begun_s
        self._tidy(now_s)
        return outcomes

    def _begin_due(self, now_s: float, *, but: Collection[int] = ()) -> dict[int, Running]:
        """Begin executions of channels that are due, as many as may run at a time, by channel."""
        if self._channels.is_down:
            return {}  # They are due as soon as Spark is back.
        known = {each.id: each for each in self._channels.all()}
        begun: dict[int, Running] = {}
        with self._awake:
            self._has_ended = False
            self._look_around(known, now_s)
            for id in self._due(now_s):
                if self._is_stopping or len(self._running()) >= self._at_once:
                    break
                if id not in but:
                    turn = self._turns[id]
                    turn.is_alone = self._channels.has_died(known[id].channel.name)
                    if not self._may_begin(turn):
                        break  # The others end first, and none begins.
                    turn.is_running = True
                    begun[id] = self._pool.submit(self._execute, known[id], turn, now_s)
        return begun

    def _due(self, now_s: float) -> list[int]:
        """The channels that are due, the longest overdue first."""
        due = sorted(
            (turn.due_s, id)
            for id, turn in self._turns.items()
            if turn.due_s is not None and turn.due_s <= now_s and not turn.is_running
        )
        return [id for _, id in due]

    def _running(self) -> list[_Turn]:
        return [turn for turn in self._turns.values() if turn.is_running]

    def _may_begin(self, turn: _Turn) -> bool:
        """S5."""
        running = self._running()
        return not running or not (turn.is_alone or any(other.is_alone for other in running))

    def _tidy(self, now_s: float) -> None:
        if now_s >= self._tidy_s:
            self._tidy_s = now_s + TIDY_EVERY_S
            self._channels.tidy(now_s=now_s)

    def _look_around(self, known: dict[int, KnownChannel], now_s: float) -> None:
        """Take note of new and dropped channels, new batches and skipped executions."""
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
                turn.is_fed = turn.is_running

    def _first_s(self, known: KnownChannel, now_s: float) -> float:
        every_s = known.channel.every_s
        if every_s is None or self._channels.has_planned(known.channel.name):  # S3
            return now_s
        return self._after(known.created_s, every_s, now_s)

    def _after(self, due_s: float, every_s: float, now_s: float) -> float:
        """The next period after now (S1)."""
        missed = max(0, int((now_s - due_s) // every_s))
        return due_s + (missed + 1) * every_s

    def _execute(self, known: KnownChannel, turn: _Turn, now_s: float) -> ExecutionOutcome | None:
        """In a thread of the pool, at once: `now_s` is the moment of the execution."""
        error, outcome = None, None
        try:
            self._channels.share_cores(known.id)
            outcome = self._channels.execute(known.channel.name, now_s=now_s)
            error = None if outcome is None else outcome.error
        except Exception as raised:  # noqa: BLE001  Other channels go on.
            error = str(raised)
        if error is not None:
            log.warning("channel failed", extra={"channel": known.channel.name, "error": error})
        with self._awake:
            self._plan_next(known, turn, outcome, error, now_s)
            turn.is_running = turn.is_fed = False
            self._has_ended = True
            self._awake.notify()
        return outcome

    def _plan_next(
        self,
        known: KnownChannel,
        turn: _Turn,
        outcome: ExecutionOutcome | None,
        error: str | None,
        now_s: float,
    ) -> None:
        assert turn.due_s is not None, "it was due"
        every_s = known.channel.every_s
        if error is not None:  # S2
            turn.failures += 1
            wait_s = backoff_s(turn.failures, first_s=BACKOFF_S, max_s=BACKOFF_S_MAX)
            turn.due_s = now_s + max(wait_s, every_s or 0.0)
            return
        turn.failures = 0
        if every_s is not None:
            turn.due_s = self._after(turn.due_s, every_s, now_s)
        else:  # Batches may have arrived during the execution, or while it failed.
            turn.due_s = None if outcome is None and not turn.is_fed else now_s
