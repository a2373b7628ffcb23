"""One Spark session for all tests of the lab, and the traces of three small runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.lab.runs import SEEDS, trace_run

from godwit.lab.spark import spark_session

HERE = Path(__file__).parent

#: For every Java that the tests start: jobs as short as these end before good code is compiled.
os.environ["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
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


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The folders of the traced runs, by seed."""
    return {seed: trace_run(tmp_path_factory.mktemp(f"seed{seed}"), seed) for seed in SEEDS}
