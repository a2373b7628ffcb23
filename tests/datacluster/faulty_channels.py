"""Channels whose executions fail after a step: a crash, a full disk."""

from __future__ import annotations

import errno
from typing import Literal, TypeAlias

import pyarrow as pa

from godwit.datacluster.channels.channel_definitions import KnownChannel
from godwit.datacluster.channels.channel_service import ChannelService
from godwit.datacluster.channels.evaluation import Evaluated
from godwit.datacluster.channels.executions import Execution

Step: TypeAlias = Literal["planned", "evaluated", "written", "committed"]
STEPS: tuple[Step, ...] = ("planned", "evaluated", "written", "committed")


class Crash(BaseException):
    """The process ends here."""


class CrashingChannels(ChannelService):
    crash_after: Step | None = None

    def _crash_after(self, step: Step) -> None:
        if step == self.crash_after:
            raise Crash

    def _plan(self, known: KnownChannel, now_s: float) -> Execution | None:
        execution = super()._plan(known, now_s)
        if execution is not None:
            self._crash_after("planned")
        return execution

    def _evaluate(self, known: KnownChannel, execution: Execution) -> Evaluated:
        evaluated = super()._evaluate(known, execution)
        self._crash_after("evaluated")
        return evaluated

    def _write(self, execution: Execution, results: pa.Table) -> None:
        super()._write(execution, results)
        if results.num_rows:
            self._crash_after("written")

    def _run(self, known: KnownChannel, execution: Execution, now_s: float) -> None:
        super()._run(known, execution, now_s)
        self._crash_after("committed")


class FullDiskChannels(ChannelService):
    is_full = True

    def _write(self, execution: Execution, results: pa.Table) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super()._write(execution, results)
