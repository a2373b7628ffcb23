"""A standby takes the place of a process that has ended, or only seems to have."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.datacluster.boxes import QUARANTINE, REPORTS, held, open_log

from godwit.datacluster import lease
from godwit.datacluster.catalog import Catalog, FencedError
from godwit.datacluster.datasets.inbox import AcceptedRecords, Inbox, Incoming
from godwit.datacluster.lease import Lease
from godwit.errors import UsageError

PATIENCE_S = 30.0
NUMBERS = "CREATE TABLE IF NOT EXISTS numbers (n INTEGER)"


def until(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def lease_of(folder: Path, *, lease_s: float = 1.0) -> Lease:
    return Lease(folder, lease_s=lease_s, beat_s=0.05)


def end_process_of(holder: Lease) -> None:
    """Release the lock, as the system does for a process that was killed."""
    assert holder._holding is not None
    lock, holder._holding = holder._holding, None
    os.close(lock)


@contextmanager
def asleep(lease: Lease) -> Iterator[None]:
    """The holder does not run for a while; `signal.SIGSTOP` does that to a process."""
    with lease._lock:
        yield


def test_one_at_a_time(tmp_path: Path) -> None:
    first, second = lease_of(tmp_path, lease_s=3.0), lease_of(tmp_path, lease_s=3.0)
    first.take()
    first.hold(pytest.fail)
    with pytest.raises(UsageError, match="another process has this open"):
        second.take()
    time.sleep(3.2)  # Longer than a lease: it beats.
    assert not second.try_to_take()
    first.give_back()
    assert second.try_to_take(), "at once"
    assert second.epoch == first.epoch + 1
    second.give_back()


def test_a_process_that_has_ended_is_replaced_at_once(tmp_path: Path) -> None:
    first, second = Lease(tmp_path, lease_s=3_600.0), Lease(tmp_path, lease_s=3_600.0)
    first.take()
    assert not second.try_to_take()
    end_process_of(first)
    assert second.try_to_take()
    second.give_back()


def test_of_several_standbys_one_takes_over(tmp_path: Path) -> None:
    # A lease without end: on a busy machine, the new holder may pause before its first beat.
    first = lease_of(tmp_path, lease_s=3_600.0)
    first.take()
    standbys = [lease_of(tmp_path, lease_s=3_600.0) for _ in range(4)]
    taken: list[Lease] = []

    def stand_by(lease: Lease) -> None:
        until(lambda: lease.try_to_take() or bool(taken))
        if lease.epoch:
            taken.append(lease)
            lease.hold(pytest.fail)

    threads = [threading.Thread(target=stand_by, args=(each,)) for each in standbys]
    for thread in threads:
        thread.start()
    end_process_of(first)
    for thread in threads:
        thread.join()
    assert len(taken) == 1
    taken[0].give_back()


def test_a_standby_that_is_taking_over_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (lease_of(tmp_path) for _ in range(3))
    first.take()
    displace = lease._displace
    tries: list[bool] = []

    def displace_slowly(folder: Path) -> None:
        displace(folder)
        tries.append(third.try_to_take())

    monkeypatch.setattr(lease, "_displace", displace_slowly)
    until(second.try_to_take)
    assert tries == [False]
    second.check()
    second.give_back()


def test_one_that_wakes_after_its_lease_was_taken_does_no_harm(tmp_path: Path) -> None:
    first, second = lease_of(tmp_path), lease_of(tmp_path)
    lost = threading.Event()
    first.take()
    old = Catalog(tmp_path, epoch=first.epoch)
    old.define(NUMBERS)
    logs = tmp_path / "logs"
    logs.mkdir()

    def inbox(lease: Lease) -> Inbox:
        log, quarantine = open_log(logs / "1"), open_log(logs / "2", QUARANTINE)
        return Inbox(REPORTS, log, QUARANTINE, quarantine, check_lease=lease.check)

    def records(first: int, last: int) -> list[Incoming]:
        return [Incoming("a", n, {"n": n}, 0.5) for n in range(first, last + 1)]

    old_inbox = inbox(first)
    assert old_inbox.take(records(1, 3)) == AcceptedRecords(3, 0, 0)
    first.hold(lost.set)
    with asleep(first):
        until(second.try_to_take)
        new_inbox = inbox(second)
        new = Catalog(tmp_path, epoch=second.epoch)
        assert new_inbox.take(records(4, 5)) == AcceptedRecords(2, 0, 0)
    with pytest.raises(FencedError):  # It is on the disk, in a file without a name.
        old_inbox.take(records(4, 9))
    with pytest.raises(FencedError), old.transaction() as connection:
        connection.execute("INSERT INTO numbers VALUES (1)")
    assert lost.wait(PATIENCE_S), "it is told, and ends"
    assert new_inbox.take(records(6, 7)) == AcceptedRecords(2, 0, 0)
    assert held(logs / "1") == [(n, n) for n in range(1, 8)]
    with new.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM numbers").fetchone()[0] == 0
    second.give_back()
