"""The trace of a live broker: what it handles, as tables in a folder (trace/).

A `Tracer` of the node (node_tracer.py): it is called around the same `Broker.handle` and
`handle_run` that run without it.

Words    queue_delay_s -> since the read that brought the message; those of one read wait for each
         other; matching_delay_s -> as long as `Broker.handle` took; delivered -> put into the
         queue of the client: clients do not report when they received it.

All brokers of a network share a folder.  The names of their files contain the broker, its start
time and its process, so that they do not overwrite each other's.

A thread writes the files.  If the disk does not keep up, rows are lost, and counted; if it fails,
the trace ends there.  The broker continues in any case.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, Report
from godwit.broker.stimuli import LocalClient, Neighbour, Received, Stimulus
from godwit.content.messages import size_bytes
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.live_meters import resident_bytes
from godwit.runtime.node_tracer import Outcomes
from godwit.runtime.peer_reader import Arrived
from godwit.runtime.settings import TraceSettings
from godwit.trace.background import Action, Background
from godwit.trace.recorder import Recorder
from godwit.trace.rows import ABSENT
from godwit.trace.writer import TraceWriter

log = logging.getLogger("godwit.tracing")

STEP_S = 0.02


class Disk:
    """Has things written, but neither waits for it nor fails with it."""

    def __init__(self) -> None:
        self.has_failed = False
        self._is_behind = False
        self._background = Background()

    def run(self, action: Action) -> bool:
        if self.has_failed:
            return False
        if self.is_busy:
            if not self._is_behind:
                log.warning("trace is incomplete", extra={"reason": "the disk does not keep up"})
            self._is_behind = True
            return False
        return self._background.run(partial(self._try, action))

    def _try(self, action: Action) -> None:
        if self.has_failed:
            return
        try:
            action()
        except Exception as error:  # noqa: BLE001  Whatever it is, the broker goes on.
            self.has_failed = True
            log.error("trace ended", extra={"reason": str(error)})  # noqa: TRY400  One line.

    def finish(self) -> None:
        self._background.end()

    @property
    def is_busy(self) -> bool:
        return self._background.is_busy

    @property
    def is_done(self) -> bool:
        return self._background.has_ended


class BrokerTrace:
    """The trace of one broker process."""

    def __init__(self, settings: TraceSettings, broker: str) -> None:
        assert settings.folder is not None
        self._settings = settings
        self._disk = Disk()
        self._writer = TraceWriter(
            Path(settings.folder),
            prefix=prefix(broker, time.time(), os.getpid()),
            rows_per_file=settings.rotate_rows,
            worker=self._disk,
        )
        self.recorder = Recorder(self._writer, sample_every=settings.sample_every)
        self._broker = broker
        self._timers: dict[str, asyncio.TimerHandle] = {}
        # Of the current read: its time, and when its first message had its turn.
        self._read_s = 0.0
        self._first_turn_s = 0.0

    @property
    def is_on(self) -> bool:
        return not self._disk.has_failed

    @property
    def rows(self) -> int:
        return self._writer.rows

    @property
    def rows_lost(self) -> int:
        return self._writer.rows_lost

    def start(self, node: BrokerNode) -> None:
        self._read_gauges(node)
        self._timers["rotate"] = self._later(self._settings.rotate_s, self._rotate)

    def before_stop(self, node: BrokerNode) -> None:
        """Read the gauges once more, while they show something."""
        self._read_gauges(node)
        for timer in self._timers.values():
            timer.cancel()

    async def stop(self, *, within_s: float) -> None:
        """Write what there is, if that can be done in time."""
        deadline_s = monotonic() + within_s
        await _until(lambda: not self._disk.is_busy, deadline_s)
        self._writer.close()
        await _until(lambda: self._disk.is_done, deadline_s)
        log.info("traced", extra={"rows": self.rows, "rows_lost": self.rows_lost})

    def _later(self, delay_s: float, action: Action) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(delay_s, action)

    def _rotate(self) -> None:
        self._writer.rotate()
        self._timers["rotate"] = self._later(self._settings.rotate_s, self._rotate)

    def _read_gauges(self, node: BrokerNode) -> None:
        streams = [port.stream for port in node.ports.values()]
        self.recorder.gauge(
            node.broker,
            time_s=node.now_s(),
            messages_queued=sum(stream.outstanding for stream in streams),
            bytes_queued=sum(s.pending_bytes + s.unacknowledged_bytes for s in streams),
            memory_bytes=resident_bytes() or ABSENT,
            clients=sum(isinstance(hop, LocalClient) for hop in node.ports),
        )
        again = partial(self._read_gauges, node)
        self._timers["gauges"] = self._later(self._settings.gauges_every_s, again)

    # -- the tracer of a node ------------------------------------------------------------------

    def handle(self, broker: Broker, stimulus: Stimulus, now_s: float) -> list[Effect]:
        if type(stimulus) is not Received:
            effects = broker.handle(stimulus, now_s=now_s)
            self._record_decisions(effects, now_s)
            return effects
        start_s = self._turn(now_s)
        effects = broker.handle(stimulus, now_s=now_s)
        self._record(stimulus, effects, now_s, start_s)
        return effects

    def watch(
        self, outcomes: Outcomes, run: Sequence[Arrived], hop: LocalClient | Neighbour, now_s: float
    ) -> Outcomes:
        is_link = type(hop) is Neighbour
        for publication, hops, _ in run:
            start_s = self._turn(now_s)
            effects, body = next(outcomes)
            received = Received(publication, hop, hops if is_link else 0)
            self._record(received, effects, now_s, start_s)
            yield effects, body

    def _turn(self, now_s: float) -> float:
        """When the next message has its turn; `now_s` is the time of its read."""
        start_s = monotonic()
        if now_s != self._read_s:
            self._read_s, self._first_turn_s = now_s, start_s
        return start_s

    def _record(
        self, received: Received, effects: Sequence[Effect], read_s: float, start_s: float
    ) -> None:
        if not self.is_on:
            return
        done_s = monotonic()
        time_s = read_s + done_s - self._first_turn_s
        self.recorder.handled(
            self._broker,
            received,
            effects,
            time_s,
            start_s - self._first_turn_s,
            done_s - start_s,
            size_bytes(received.message),
        )
        for effect in effects:
            if type(effect) is Deliver:
                names = [client.name for client in effect.to]
                self.recorder.delivered(names, effect.publication, effect.hops, time_s)
        self._record_decisions(effects, time_s)

    def _record_decisions(self, effects: Sequence[Effect], time_s: float) -> None:
        if self.is_on:
            for effect in effects:
                if type(effect) is Report:
                    self.recorder.decided(self._broker, effect.policy, effect.decision, time_s)


async def _until(done: Callable[[], bool], deadline_s: float) -> None:
    while not done() and monotonic() < deadline_s:  # noqa: ASYNC110  The thread has no loop.
        await asyncio.sleep(STEP_S)


def prefix(broker: str, start_s: float, process: int) -> str:
    """How the names of a broker's files start: with nothing that Spark would stumble over."""
    start = time.strftime("%Y%m%dT%H%M%S", time.gmtime(start_s))
    return f"{re.sub('[^0-9A-Za-z]', '-', broker)}-{start}-{process}-"
