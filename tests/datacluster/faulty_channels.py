"""Channels whose executions fail after a step: a crash, a full disk."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from godwit.datacluster.channels.channel_definitions import KnownChannel
from godwit.datacluster.channels.channel_service import ChannelService
from godwit.datacluster.channels.executions import Execution
from godwit.datacluster.channels.result_files import ResultFiles
from godwit.datacluster.channels.result_writing import ResultWriter, Written

Step: TypeAlias = Literal["planned", "evaluated", "written", "committed"]
STEPS: tuple[Step, ...] = ("planned", "evaluated", "written", "committed")


#: Few, so that random histories have results that Spark's tasks write.
HERE_ROWS_MAX = 8


class Crash(BaseException):
    """The process ends here."""


class CrashingWriter(ResultWriter):
    def __init__(self, files: ResultFiles, crash_after: Callable[[Step], None]) -> None:
        super().__init__(files, here_rows_max=HERE_ROWS_MAX)
        self._crash_after = crash_after

    def write_here(self, execution: Execution, results: pa.Table) -> Written:
        self._crash_after("evaluated")
        return self._written(super().write_here(execution, results))

    def write_there(self, execution: Execution, results: DataFrame) -> Written:
        self._crash_after("evaluated")
        return self._written(super().write_there(execution, results))

    def _written(self, written: Written) -> Written:
        if written.rows:
            self._crash_after("written")
        return written


class CrashingChannels(ChannelService):
    crash_after: Step | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._writer = CrashingWriter(self._files, self._crash_after)

    def _crash_after(self, step: Step) -> None:
        if step == self.crash_after:
            raise Crash

    def _plan(self, known: KnownChannel, now_s: float) -> Execution | None:
        execution = super()._plan(known, now_s)
        if execution is not None:
            self._crash_after("planned")
        return execution

    def _run(self, known: KnownChannel, execution: Execution, now_s: float) -> None:
        super()._run(known, execution, now_s)
        self._crash_after("committed")


class FullDiskWriter(ResultWriter):
    is_full = True

    def write_here(self, execution: Execution, results: pa.Table) -> Written:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write_here(execution, results)


class FullDiskChannels(ChannelService):
    """The disk is full until `writer.is_full` is cleared."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._writer = self.writer = FullDiskWriter(self._files)
