"""How much memory Spark gets, by that of the machine."""

from __future__ import annotations

import logging

import pytest

from godwit.spark.memory import default_memory_mib, machine_mib


@pytest.mark.parametrize(
    ("total_mib", "memory_mib"),
    [(2_048, 1_024), (8_192, 2_048), (24_576, 6_144), (262_144, 8_192)],
)
def test_a_quarter_within_bounds(total_mib: int, memory_mib: int) -> None:
    assert default_memory_mib(total_mib) == memory_mib


def test_a_machine_that_is_too_small_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        default_memory_mib(2_048)
        default_memory_mib(4_096)
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "this machine is too small for Spark"
    ]


def test_the_machine_has_some() -> None:
    assert 256 < machine_mib() < 2**24
