"""One Spark session for all tests of the data cluster."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark import mark, spark

__all__ = ["spark"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items, Path(__file__).parent)
