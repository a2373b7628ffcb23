"""The Spark session of the tests of planning on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark import mark, spark

__all__ = ["spark"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(
        [item for item in items if item.path.stem == "test_planning_on_spark"],
        Path(__file__).parent,
    )
