"""Who stops measuring hears no more of it: the cache may be somebody else's by then."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession
from tests.lab.toy import toy

from godwit.lab.cache import PlannedRun
from godwit.lab.declaration import Case, Trace
from godwit.lab.measuring import Measuring


def test_what_is_under_way_when_it_stops_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def measure(_trace: Trace, _case: Case) -> dict[str, float]:
        begun.set()
        may_end.wait()
        return {"deliveries": 1.0}

    reported: list[PlannedRun] = []
    monkeypatch.setattr("godwit.lab.measuring.read_trace", lambda *_: None)
    session = cast("SparkSession", object())  # It is only passed on.
    measuring = Measuring(
        replace(toy(), measure=measure), "", lambda run, _: reported.append(run), session=session
    )
    measuring.start()
    measuring.take(PlannedRun({}, 1), Path("trace"))
    begun.wait()
    measuring.stop()
    may_end.set()
    for thread in measuring._threads:
        thread.join()
    assert (reported, measuring.failed) == ([], None)
