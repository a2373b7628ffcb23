"""An inbox: records that are accepted, quarantined or refused; also from several threads."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from tests.datacluster.boxes import QUARANTINE, REPORTS, held, open_inbox, open_log

from godwit.client.client_session import StreamMark
from godwit.content.messages import AdvertisementId, Publication
from godwit.datacluster.datasets.inbox import AcceptedRecords, Inbox, Incoming
from godwit.datacluster.feeding import Feeder, take_posted
from godwit.datacluster.log.feed_log import LogSettings
from godwit.datacluster.log.segments import FullError
from godwit.datacluster.model.feed import Feed


def record(sequence: int, content: dict[str, object] | bytes, source: str = "a") -> Incoming:
    return Incoming(source, sequence, content, 0.5)


def test_what_does_not_fit_is_kept_with_the_reason(tmp_path: Path) -> None:
    inbox, log, quarantine = open_inbox(tmp_path)
    records = [
        record(1, {"n": 1}),
        record(2, {"n": "x"}),
        record(3, b'{"n": 3, "more": 1}'),
        record(4, b"oh"),
    ]
    assert inbox.take(records, {"feed": 4}) == AcceptedRecords(accepted=2, rejected=2, duplicates=0)
    assert inbox.take(records, {"feed": 4}) == AcceptedRecords(accepted=0, rejected=0, duplicates=4)
    assert inbox.marks == {"feed": 4}
    assert inbox.waiting_bytes == log.waiting_bytes + quarantine.waiting_bytes
    assert held(log.folder) == [(1, 1), (2, 3)]
    folder = quarantine.folder
    assert [value for _, value in held(folder, "reason")] == [
        "n: 'x' is not a whole number",
        "not a JSON object: JSON is malformed: invalid character (byte 0)",
    ]
    assert held(folder, "record") == [(1, '{"n":"x"}'), (2, "oh")]
    assert held(folder, "source") == [(1, "a"), (2, "a")]
    assert held(folder, "sequence") == [(1, 2), (2, 4)]
    assert [(reason[:9], text) for _, reason, text in inbox.rejections] == [
        ("n: 'x' is", '{"n":"x"}'),
        ("not a JSO", "oh"),
    ], "for operators, each once"


def test_records_without_a_producer_are_new_whatever_the_clock_says(tmp_path: Path) -> None:
    inbox, log, quarantine = open_inbox(tmp_path)
    # As an earlier release numbered them, when the clock was ahead.
    inbox.take([record(4_000_000_000_000_000_000, {"n": 1}, "http/")])
    taken = take_posted(inbox, [b'{"n": 2}', b"oh", b'{"n": 3}'], None, 1, accepted_s=5.0)
    assert taken == AcceptedRecords(accepted=2, rejected=1, duplicates=0)
    log.close()
    quarantine.close()
    inbox, log, quarantine = open_inbox(tmp_path)  # After a restart, too.
    taken = take_posted(inbox, [b"oh", b'{"n": 4}'], None, 1, accepted_s=5.0)
    assert taken == AcceptedRecords(accepted=1, rejected=1, duplicates=0)
    assert [n for _, n in held(log.folder)] == [1, 2, 3, 4]
    assert len(held(quarantine.folder, "reason")) == 2


def test_marks_are_not_ahead_of_what_is_kept_aside(tmp_path: Path) -> None:
    """If the quarantine is full, nothing of the batch is accepted; it can be sent again."""
    log = open_log(tmp_path / "log")
    quarantine_log = open_log(tmp_path / "q", QUARANTINE, LogSettings(waiting_bytes_max=1))
    inbox = Inbox(REPORTS, log, QUARANTINE, quarantine_log)
    inbox.take([record(1, b"bad")], {"feed": 1})
    batch = [record(2, {"n": 2}), record(3, b"bad")]
    with pytest.raises(FullError, match=r"q: .* bytes wait"):
        inbox.take(batch, {"feed": 3})
    assert inbox.marks == {"feed": 1}
    assert held(log.folder) == []
    quarantine_log.ingested(1)
    assert inbox.take(batch, {"feed": 3}) == AcceptedRecords(accepted=1, rejected=1, duplicates=0)
    assert inbox.marks == {"feed": 3}


def test_a_feed_hears_a_publisher_that_was_started_again(tmp_path: Path) -> None:
    inbox, log, _ = open_inbox(tmp_path)
    feeder = Feeder(
        Feed("reports", "n is present", "Reports"), inbox, "data.reports", "", "", clock=lambda: 5.0
    )

    def published(incarnation: str, sequence: int, n: int) -> Publication:
        id = AdvertisementId(f"paul/{incarnation}~a1")
        return Publication(publisher="paul", sequence=sequence, advertisement=id, content={"n": n})

    first, second = published("i1", 1_000, 1), published("i2", 1, 2)
    for number, batch in enumerate([[first], [first, second], [second]]):
        asyncio.run(feeder._keep(batch, StreamMark(1, number, "stream", "data.reports/s1")))
    assert [n for _, n in held(log.folder)] == [1, 2]


def test_threads_take_turns(tmp_path: Path) -> None:
    inbox, log, _ = open_inbox(tmp_path)

    def feed(source: str) -> None:
        for n in range(50):
            inbox.take([record(n, {"n": n}, source), record(n, {"n": n}, source)], {source: n})

    threads = [threading.Thread(target=feed, args=(source,)) for source in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = held(log.folder)
    assert [position for position, _ in found] == list(range(1, 201))
    assert sorted(str(n) for _, n in found) == sorted(str(n) for n in range(50) for _ in "abcd")
    assert inbox.marks == dict.fromkeys("abcd", 49)
