"""What tests that use Spark share: one session in each worker of xdist."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from godwit.spark.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[*]", application="tests", for_small=True)
    yield session
    session.stop()
