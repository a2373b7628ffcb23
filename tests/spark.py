"""What tests that use Spark share: one session in each worker of xdist."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from godwit.spark.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("local[*]", application="tests", for_small=True)
    # Queries over a few rows, each asked once or twice, are not worth a Java class of their own:
    # a fifth of the time.  Processes that tests start have theirs compiled, as users have.
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    yield session
    session.stop()
