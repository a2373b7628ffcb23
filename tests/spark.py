"""What tests that use Spark share: one session, in one worker of xdist."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit.lab.spark import spark_session

#: For every Java that the tests start: jobs as short as these end before good code is compiled.
os.environ["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def mark(items: Iterable[pytest.Item], folder: Path) -> None:
    """Mark the tests of a folder as such."""
    for item in items:
        if folder in item.path.parents:
            # A session takes seconds to start: all in one worker of xdist.
            item.add_marker(pytest.mark.xdist_group("spark"))
            # Spark leaves its connections to Java to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
            )


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[*]", application="tests")
    yield session
    session.stop()
