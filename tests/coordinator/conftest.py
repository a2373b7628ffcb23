"""The Spark session of the tests of planning on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark import mark, spark

__all__ = ["spark"]


@pytest.hookimpl(tryfirst=True)  # Before xdist looks at the marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(
        [item for item in items if item.path.stem == "test_planning_on_spark"],
        Path(__file__).parent,
    )
