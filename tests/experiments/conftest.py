"""The Spark session of the tests of the lab."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark import mark, spark

__all__ = ["spark"]


@pytest.hookimpl(tryfirst=True)  # Before xdist looks at the marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items, Path(__file__).parent)
