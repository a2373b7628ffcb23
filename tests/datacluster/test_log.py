"""The log: recovery after a crash, duplicates, limits, damage."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from tests.datacluster.boxes import held, open_log, some

from godwit.datacluster.log import feed_log as log_module
from godwit.datacluster.log.durable_position import durable_position
from godwit.datacluster.log.feed_log import Appended, FeedLog, LogSettings
from godwit.datacluster.log.log_frames import DamagedError, segments
from godwit.datacluster.log.segments import FullError
from godwit.errors import UsageError

TINY = LogSettings(segment_bytes=1)


def test_what_was_appended_is_there_after_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.append(some(7, 8), [("a", 1), ("b", 1)], {"feed": 10}) == Appended(2, 0)
    assert log.append(some(9), [("a", 2)], {"feed": "11", "other": 1}) == Appended(1, 0)
    log.close()

    log = open_log(tmp_path)
    assert (log.position, log.marks) == (3, {"feed": "11", "other": 1})
    assert log.append(some(7, 9, 10), [("a", 1), ("a", 2), ("a", 3)]) == Appended(1, 2)
    assert held(tmp_path) == [(1, 7), (2, 8), (3, 9), (4, 10)]
    assert durable_position(tmp_path) == 4
    log.close()


def test_a_duplicate_is_not_added_within_a_batch_either(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    added = log.append(some(1, 2, 3, 4), [("a", 5), ("a", 5), ("a", 4), ("b", 4)])
    assert added == Appended(2, 2)
    assert held(tmp_path) == [(1, 1), (2, 4)]
    log.close()


def test_marks_need_no_records(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(some(), [], {"feed": 1})
    size_bytes = segments(tmp_path)[0].stat().st_size
    log.append(some(), [], {"feed": 1})
    assert segments(tmp_path)[0].stat().st_size == size_bytes, "nothing has changed"
    assert log.waiting_bytes == 0
    log.close()
    log = open_log(tmp_path)
    assert (log.position, log.marks) == (0, {"feed": 1})
    log.close()


def test_wherever_a_crash_cuts_the_last_write_the_rest_is_there(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    log = open_log(whole)
    log.append(some(1, 2), [("a", 1), ("a", 2)], {"feed": 2})
    before_bytes = segments(whole)[0].stat().st_size
    log.append(some(3), [("a", 3)], {"feed": 3})
    log.close()
    for size_bytes in range(before_bytes, segments(whole)[0].stat().st_size):
        torn = tmp_path / "torn"
        shutil.copytree(whole, torn)
        with segments(torn)[0].open("r+b") as file:
            file.truncate(size_bytes)
        log = open_log(torn)
        assert (log.position, log.marks) == (2, {"feed": 2})
        assert log.append(some(2, 3), [("a", 2), ("a", 3)]) == Appended(1, 1)
        log.close()
        assert held(torn) == [(1, 1), (2, 2), (3, 3)]
        shutil.rmtree(torn)


def test_disks_do_not_write_in_the_order_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the second of three frames of one write is torn, the third is dropped, too."""
    monkeypatch.setattr(log_module, "ROWS_PER_FRAME", 2)
    log = open_log(tmp_path)
    log.append(some(1), [("a", 1)])
    log.append(some(2, 3, 4, 5, 6), [("a", n) for n in range(2, 7)], {"feed": 6})
    log.close()
    path = segments(tmp_path)[0]
    data = bytearray(path.read_bytes())
    place = data.find(b"text 4")
    data[place : place + 6] = bytes(6)
    path.write_bytes(data)
    log = open_log(tmp_path)
    assert (log.position, log.marks, log._sequences) == (3, {}, {"a": 3})
    log.close()


@pytest.mark.parametrize("what", ["text 1", "GWF1"])
def test_damage_is_not_taken_for_a_crash(tmp_path: Path, what: str) -> None:
    log = open_log(tmp_path)
    log.append(some(0), [("a", 0)])
    log.append(some(1), [("a", 1)])
    log.append(some(2), [("a", 2)])
    log.close()
    path = segments(tmp_path)[0]
    data = bytearray(path.read_bytes())
    place = data.find(what.encode(), data.find(b"text 0"))
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="is damaged"):
        open_log(tmp_path)


def test_a_segment_that_was_begun_and_not_finished_does_not_count(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(some(1), [("a", 1)])
    log.close()
    (tmp_path / "00000000000000000002.new").write_bytes(b"GWF1")
    log = open_log(tmp_path)
    assert log.position == 1
    assert not list(tmp_path.glob("*.new"))
    log.close()


def test_segments_that_were_ingested_are_deleted_and_what_they_said_is_not(tmp_path: Path) -> None:
    log = open_log(tmp_path, settings=TINY)
    for n in range(1, 6):
        log.append(some(n), [(f"source {n}", n)], {f"feed {n}": n})
    assert [int(path.stem) for path in segments(tmp_path)] == [1, 2, 3, 4, 5]
    log.ingested(3)
    assert [position for position, _ in held(tmp_path)] == [4, 5]
    log.ingested(5)
    assert [position for position, _ in held(tmp_path)] == [5], "the last one remembers"
    log.close()

    log = open_log(tmp_path, settings=TINY)
    assert log.marks == {f"feed {n}": n for n in range(1, 6)}
    assert log.append(some(1), [("source 1", 1)]) == Appended(0, 1)
    assert log.append(some(6), [("source 1", 2)]) == Appended(1, 0)
    assert log.position == 6
    log.close()


def fill(log: FeedLog) -> None:
    for n in range(100):
        log.append(some(n), [("a", n)], {"feed": n})


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    log = open_log(tmp_path, settings=LogSettings(waiting_bytes_max=1_500, segment_bytes=1))
    with pytest.raises(FullError, match="wait to be ingested"):
        fill(log)
    taken = log.position
    assert 0 < log.waiting_bytes <= 1_500
    assert log.marks == {"feed": taken - 1}, "what was refused has left no trace"
    with pytest.raises(FullError):
        log.append(some(taken), [("a", taken)])
    log.ingested(taken)
    assert log.waiting_bytes == 0
    assert log.append(some(taken), [("a", taken)]) == Appended(1, 0)

    waiting_bytes = log.waiting_bytes
    log.close()
    log = open_log(tmp_path)
    log.ingested(taken)
    assert log.waiting_bytes == waiting_bytes
    log.close()


@pytest.mark.parametrize("failures", [1, 2], ids=["once", "when it is undone, too"])
def test_a_write_that_fails_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """A disk may report only at the sync that it is full."""
    log = open_log(tmp_path)
    log.append(some(1), [("a", 1)])
    left = iter([OSError(errno.ENOSPC, "full")] * failures)

    def fail(_: int, __: int = 0) -> None:
        for error in left:
            raise error

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(FullError, match="the disk is full"):
            log.append(some(2), [("a", 2)], {"feed": 2})
    assert (log.position, log.marks, log._sequences) == (1, {}, {"a": 1})
    assert durable_position(tmp_path) == 1
    assert log.append(some(3), [("a", 3)]) == Appended(1, 0)
    log.close()
    log = open_log(tmp_path)
    assert held(tmp_path) == [(1, 1), (2, 3)]
    log.close()


def test_a_source_that_was_long_silent_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_module, "SOURCES_MAX", 2)
    log = open_log(tmp_path)
    log.append(some(1), [("a", 1)])
    log.append(some(2), [("b", 1)])
    log.append(some(3), [("a", 2)])
    log.append(some(4), [("c", 1)])
    assert log._sequences == {"a": 2, "c": 1}
    log.close()


def test_a_log_that_was_lost_goes_on_above_what_the_dataset_has(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.start_after(17)
    log.append(some(1), [("a", 1)])
    log.start_after(17)
    log.close()
    log = open_log(tmp_path)
    assert log.position == 18
    assert held(tmp_path) == [(18, 1)]
    log.close()


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(UsageError, match="another process has this open"):
        open_log(tmp_path)
    log.close()
    open_log(tmp_path).close()
