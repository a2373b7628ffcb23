"""Logs and inboxes for tests; the records of a log, read as Spark reads them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from godwit.datacluster.datasets.definitions import QUARANTINE_COLUMNS
from godwit.datacluster.datasets.inbox import Inbox
from godwit.datacluster.log.feed_log import FeedLog, LogSettings
from godwit.datacluster.log.log_frames import frames, records, schema_of, segments
from godwit.datacluster.model.dataset import Column, ColumnType, Dataset
from godwit.datacluster.model.schemas import logged

REPORTS = Dataset("Reports", (Column("n", ColumnType.BIGINT), Column("text", ColumnType.STRING)))
QUARANTINE = Dataset("Reports_quarantine", QUARANTINE_COLUMNS)


def open_log(
    folder: Path, dataset: Dataset = REPORTS, settings: LogSettings | None = None
) -> FeedLog:
    return FeedLog(folder, logged(dataset), settings or LogSettings())


def open_inbox(folder: Path, settings: LogSettings | None = None) -> tuple[Inbox, FeedLog, FeedLog]:
    log = open_log(folder / "log", REPORTS, settings)
    quarantine_log = open_log(folder / "quarantine", QUARANTINE, settings)
    return Inbox(REPORTS, log, QUARANTINE, quarantine_log), log, quarantine_log


def some(*numbers: int) -> pa.RecordBatch:
    """Records with these numbers."""
    texts = [f"text {number}" for number in numbers]
    columns = [pa.array(numbers, pa.int64()), pa.array(texts), pa.array([0.5] * len(numbers))]
    return pa.record_batch(columns, schema=logged(REPORTS))


def held(folder: Path, column: str = "n") -> list[tuple[int, object]]:
    """The position of each record of a log, and its value in a column."""
    found: list[tuple[int, object]] = []
    for path in segments(folder):
        schema = schema_of(path)
        for frame in frames(path):
            if frame.rows:
                values = records(path, frame, schema).column(column).to_pylist()
                found += zip(range(frame.first, frame.last + 1), values, strict=True)
    return found
