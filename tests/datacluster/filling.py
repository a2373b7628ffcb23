"""A process whose files may only grow so far: as on a full disk.  Run by test_full_disk.py."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from tests.datacluster.boxes import held, open_inbox

from godwit.datacluster.inbox import Incoming
from godwit.datacluster.log import LogSettings
from godwit.datacluster.segments import FullError


def limit(size_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))


def records(first: int) -> list[Incoming]:
    return [Incoming("a", n, {"n": n, "text": "x" * 100}, 0.5) for n in range(first, first + 10)]


def main(folder: Path, segment_bytes: int) -> None:
    settings = LogSettings(segment_bytes=segment_bytes)
    inbox, log, quarantine = open_inbox(folder, settings)
    limit(20_000)
    acknowledged = 0
    refused = ""
    while not refused:
        try:
            inbox.take(records(acknowledged), {"feed": acknowledged})
        except FullError as error:
            refused = str(error)
        else:
            acknowledged += 10
    assert refused == "log: no room on the disk for what has arrived", refused
    assert acknowledged >= 50
    for _ in range(3):  # Still full, still in order.
        try:
            inbox.take(records(acknowledged), {"feed": acknowledged})
        except FullError:
            continue
        raise AssertionError("there was room after all")
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
