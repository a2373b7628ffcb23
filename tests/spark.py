"""What tests that use Spark share: one session, in one worker of xdist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit.spark.session import spark_session

#: A session takes seconds to start: all in one worker of xdist.
IN_ONE_WORKER = pytest.mark.xdist_group("spark")


def mark(items: Iterable[pytest.Item], folder: Path) -> None:
    """Mark the tests of a folder as such."""
    for item in items:
        if folder in item.path.parents:
            item.add_marker(IN_ONE_WORKER)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[*]", application="tests", for_small=True)
    yield session
    session.stop()
