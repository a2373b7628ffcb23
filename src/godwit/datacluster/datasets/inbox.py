"""The inbox of a dataset: records are checked, written to a log, and only then acknowledged.

    records --> fit the columns? --> the dataset's log           --> ingestion
                             `-----> the log of its quarantine   --> ingestion

I1  When `take` returns, all its records are on the disk, once: accepted, in the quarantine with the
    reason, or recognised as duplicates.  When it raises, nothing may be acknowledged, and
    everything may be sent again.
I2  Marks are written after all records that came with them.

A record goes to the same log each time it is sent, and each log recognises its own duplicates: a
crash between the two writes does no harm.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from godwit.datacluster.datasets.records import Content, RecordFitter, as_text
from godwit.datacluster.log.feed_log import Appended, FeedLog
from godwit.datacluster.log.log_frames import Marks
from godwit.datacluster.model.dataset import Dataset

RECORD_TEXT_MAX = 4_096


class Incoming(NamedTuple):
    source: str
    """The scope of the sequence number: within a source, numbers rise in the order of arrival.

    A source is a feed and an incarnation of a publisher: several feeds may fill one dataset, and a
    publisher that is started again numbers from the start.
    """

    sequence: int
    content: Content
    accepted_s: float


class AcceptedRecords(msgspec.Struct, frozen=True):
    accepted: int
    rejected: int
    duplicates: int


#: Kept in memory, for operators who look; all are in the quarantine.
REJECTIONS_SHOWN, SHOWN_TEXT_MAX = 5, 200


class Inbox:
    """May be used from several threads."""

    def __init__(
        self,
        dataset: Dataset,
        log: FeedLog,
        quarantine: Dataset,
        quarantine_log: FeedLog,
        *,
        check_lease: Callable[[], None] = lambda: None,
    ) -> None:
        """`check_lease` raises if this process may not acknowledge anything any more."""
        self._check_lease = check_lease
        self.dataset = dataset
        self._log = log
        self._quarantine_log = quarantine_log
        self._fitter = RecordFitter(dataset)
        self._quarantine_fitter = RecordFitter(quarantine)
        self._lock = threading.Lock()
        self._unnumbered = threading.Lock()
        self.rejections: deque[tuple[float, str, str]] = deque(maxlen=REJECTIONS_SHOWN)
        """The last records that did not fit, since the start: time, reason, and the record."""

    @property
    def marks(self) -> Marks:
        """The last position of each stream that is on the disk."""
        return self._log.marks

    @property
    def waiting_bytes(self) -> int:
        """Size of the records that are not yet ingested."""
        return self._log.waiting_bytes + self._quarantine_log.waiting_bytes

    def take_unnumbered(
        self, source: str, contents: Sequence[Content], accepted_s: float
    ) -> AcceptedRecords:
        """As `take` for records without sequence numbers: each of them is new.

        They continue the numbers of their source.  A clock cannot number them: it may go back.
        """
        with self._unnumbered:
            last = max(log.last_sequence(source) for log in (self._log, self._quarantine_log))
            numbered = enumerate(contents, start=last + 1)
            return self.take([Incoming(source, n, content, accepted_s) for n, content in numbered])

    def take(
        self, records: Sequence[Incoming], marks: Mapping[str, str | int] | None = None
    ) -> AcceptedRecords:
        """Raises FullError if too much waits or the disk is full."""
        fitted = self._fitter.fit(
            [record.content for record in records], [record.accepted_s for record in records]
        )
        sources = [(records[place].source, records[place].sequence) for place in fitted.places]
        with self._lock:
            rejected = self._reject(records, fitted.reasons)
            accepted = self._log.append(fitted.batch, sources, marks)
        self._check_lease()  # What was written before belongs to the next holder.
        return AcceptedRecords(
            accepted.added, rejected.added, accepted.duplicates + rejected.duplicates
        )

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
        fitted = self._quarantine_fitter.fit(kept, [record.accepted_s for record, _ in rejected])
        assert not fitted.reasons, f"a reason does not fit: {fitted.reasons}"
        sources = [(record.source, record.sequence) for record, _ in rejected]
        appended = self._quarantine_log.append(fitted.batch, sources)
        if appended.added:  # Else they were there already.
            self.rejections.extend(
                (record.accepted_s, reason, as_text(record.content, length_max=SHOWN_TEXT_MAX))
                for record, reason in rejected[-appended.added :]
            )
        return appended
