"""Where records come in: checked, put in the log of their dataset, and only then acknowledged.

    records --> fit the columns? --> the dataset's log           --> ingestion
                             `-----> the log of its quarantine   --> ingestion

I1  When `take` returns, everything it was given is on the disk, once: taken, kept with the reason,
    or known from before.  When it raises, nothing may be acknowledged, and everything may be sent
    again.
I2  Marks are written after all records that came with them.

A record goes to the same log whenever it is sent, and each log knows its own duplicates: a crash
between the two does no harm.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from godwit.datacluster.dataset import Dataset
from godwit.datacluster.frames import Marks
from godwit.datacluster.log import Appended, FeedLog
from godwit.datacluster.records import Content, Fitting, as_text

RECORD_TEXT_MAX = 4_096


class Incoming(NamedTuple):
    source: str
    """Whose sequence numbers these are: within a source, they rise in the order of arrival.

    If several feeds lead into one dataset, a feed and a publisher together are a source.
    """

    sequence: int
    content: Content
    accepted_s: float


class Taken(msgspec.Struct, frozen=True):
    accepted: int
    rejected: int
    duplicates: int


class Inbox:
    """Of one dataset.  May be used from several threads."""

    def __init__(
        self, dataset: Dataset, log: FeedLog, quarantine: Dataset, quarantine_log: FeedLog
    ) -> None:
        self.dataset = dataset
        self._log = log
        self._quarantine_log = quarantine_log
        self._fitting = Fitting(dataset)
        self._quarantine_fitting = Fitting(quarantine)
        self._lock = threading.Lock()

    @property
    def marks(self) -> Marks:
        """How far streams were received, as of what is on the disk."""
        return self._log.marks

    @property
    def waiting_bytes(self) -> int:
        """Not yet ingested."""
        return self._log.waiting_bytes + self._quarantine_log.waiting_bytes

    def take(
        self, records: Sequence[Incoming], marks: Mapping[str, str | int] | None = None
    ) -> Taken:
        """Raises FullError if too much waits, or the disk is full."""
        fitted = self._fitting.fit(
            [record.content for record in records], [record.accepted_s for record in records]
        )
        sources = [(records[place].source, records[place].sequence) for place in fitted.places]
        with self._lock:
            rejected = self._reject(records, fitted.reasons)
            accepted = self._log.append(fitted.batch, sources, marks)
        return Taken(accepted.added, rejected.added, accepted.duplicates + rejected.duplicates)

    def _reject(self, records: Sequence[Incoming], reasons: dict[int, str]) -> Appended:
        if not reasons:
            return Appended(0, 0)
        rejected = [(records[place], reasons[place]) for place in sorted(reasons)]
        kept: list[Content] = [
            {
                "reason": reason,
                "record": as_text(record.content, length_max=RECORD_TEXT_MAX),
                "source": record.source,
                "sequence": record.sequence,
            }
            for record, reason in rejected
        ]
        fitted = self._quarantine_fitting.fit(kept, [record.accepted_s for record, _ in rejected])
        assert not fitted.reasons, f"a reason does not fit: {fitted.reasons}"
        sources = [(record.source, record.sequence) for record, _ in rejected]
        return self._quarantine_log.append(fitted.batch, sources)
