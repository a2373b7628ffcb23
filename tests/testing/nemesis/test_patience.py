"""Time-outs count the time of a machine that is not busy."""

from __future__ import annotations

import asyncio
import os

import pytest

from godwit.testing.nemesis.patience import SLOWER_MAX, TICK_S, in_time, slowness
from godwit.testing.virtual_time import run_in_virtual_time


def busy(monkeypatch: pytest.MonkeyPatch, load: float) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.mark.parametrize(
    ("load", "longer"), [(0.0, 1.0), (2.0, 1.0), (6.0, 3.0), (99.0, SLOWER_MAX)]
)
def test_a_busy_machine_has_more_time(
    load: float, longer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> float:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        with pytest.raises(TimeoutError):
            await in_time(asyncio.sleep(1_000.0), 10.0)
        return loop.time() - start_s

    busy(monkeypatch, load)
    assert run_in_virtual_time(scenario()) == pytest.approx(10.0 * longer, rel=0.02)


def test_a_process_that_is_woken_up_late_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    busy(monkeypatch, 0.0)
    assert slowness(TICK_S) == 1.0
    assert slowness(3 * TICK_S) == pytest.approx(3.0)


def test_what_is_done_in_time_passes_and_its_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail() -> None:
        await asyncio.sleep(1.0)
        raise ValueError("from inside")

    async def scenario() -> None:
        await in_time(asyncio.sleep(9.0), 10.0)
        with pytest.raises(ValueError, match="from inside"):
            await in_time(fail(), 10.0)

    busy(monkeypatch, 0.0)
    run_in_virtual_time(scenario())
