"""A process with a limit on the size of its files, as on a full disk.  Run by test_full_disk.py."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from tests.datacluster.boxes import held, open_inbox

from godwit.datacluster.datasets.inbox import Incoming
from godwit.datacluster.log.feed_log import LogSettings
from godwit.datacluster.log.segments import FullError


def limit(size_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))


def records(first: int) -> list[Incoming]:
    return [Incoming("a", n, {"n": n, "text": "x" * 100}, 0.5) for n in range(first, first + 10)]


def main(folder: Path, segment_bytes: int) -> None:
    settings = LogSettings(segment_bytes=segment_bytes)
    inbox, log, quarantine = open_inbox(folder, settings)
    acknowledged = 0
    for _ in range(6):
        inbox.take(records(acknowledged), {"feed": acknowledged})
        acknowledged += 10
    limit(min(20_000, segment_bytes - 500))  # So that a segment is never finished.
    refused = ""
    while not refused:
        try:
            inbox.take(records(acknowledged), {"feed": acknowledged})
        except FullError as error:
            refused = str(error)
        else:
            acknowledged += 10
    assert refused == "log: the disk is full", refused
    assert acknowledged >= 50
    for _ in range(3):  # Still full; nothing changes.
        try:
            inbox.take(records(acknowledged), {"feed": acknowledged})
        except FullError:
            continue
        raise AssertionError("the write succeeded although the disk is full")
    assert log.position == acknowledged
    assert inbox.marks == {"feed": acknowledged - 10}
    limit(10_000_000)
    inbox.take(records(acknowledged), {"feed": acknowledged})
    log.close()
    quarantine.close()
    inbox, log, quarantine = open_inbox(folder, settings)
    assert held(log.folder) == [(n + 1, n) for n in range(acknowledged + 10)]
    assert inbox.marks == {"feed": acknowledged}
    print("good")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
