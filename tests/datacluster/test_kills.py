"""kill -9 of the whole data cluster at a random moment, while records come in and files are merged.

The sender repeats what was not acknowledged, and sends some records twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from tests.datacluster.landed_files import check
from tests.sweeps import in_sweeps

ROOT = Path(__file__).parents[2]
KILLS = 1
RECORDS_AT_A_TIME = 40


class Feeding:
    """The process, and the records that it has acknowledged."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(  # noqa: S603  Our own.
            [sys.executable, "-m", "tests.datacluster.feeding", "local[2]", str(folder)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True,
        )  # fmt: skip
        self.java = 0

    def ask(self, text: str) -> list[str]:
        """Its answer; nothing if it has been killed."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{text}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return []
        return self.answer()

    def answer(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def kill_after(self, delay_s: float) -> threading.Timer:
        timer = threading.Timer(delay_s, self.process.kill)
        timer.start()
        return timer

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        if self.java:
            _wait_for_end(self.java)


def _wait_for_end(process: int) -> None:
    """Java ends when the process that started it has ended."""
    deadline_s = time.monotonic() + 60.0
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline_s, "Java is still there"
        time.sleep(0.05)


@in_sweeps  # tests/live/test_datacluster.py kills a whole data cluster, too.
@pytest.mark.parametrize("seed", [int(os.environ.get("GODWIT_SEED", "1"))])
def test_nothing_is_lost_or_doubled(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    acknowledged = 0
    for _ in range(KILLS):
        feeding = Feeding(tmp_path)
        try:
            ready = feeding.answer()
            feeding.java = int(ready[1])
            assert int(ready[2]) >= acknowledged, "what was acknowledged was received"
            timer = feeding.kill_after(random.uniform(0.0, 6.0))
            while True:
                first = max(1, acknowledged + 1 - random.choice([0, 0, 5]))
                last = acknowledged + RECORDS_AT_A_TIME
                if feeding.ask(f"take {first} {last + 1 - first}")[:1] != ["taken"]:
                    break
                acknowledged = last
                time.sleep(random.uniform(0.0, 0.1))  # For several batches.
            timer.join()
        finally:
            feeding.close()
    feeding = Feeding(tmp_path)
    try:
        feeding.java = int(feeding.answer()[1])
        last = acknowledged + RECORDS_AT_A_TIME
        feeding.ask(f"take {acknowledged + 1} {last - acknowledged}")
        assert feeding.ask("finish") == ["finished", "0"]
    finally:
        feeding.close()
    check(tmp_path, last)
