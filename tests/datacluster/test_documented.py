"""The statements of the README are accepted."""

from __future__ import annotations

import shlex
from pathlib import Path

from pyspark.sql import SparkSession
from tests.test_readme import blocks

from godwit.datacluster.cluster import Cluster
from godwit.datacluster.settings import DataClusterSettings
from godwit.spark.supervised import SupervisedSpark


def test_what_the_readme_makes_can_be_made(spark: SparkSession, tmp_path: Path) -> None:
    (block,) = [text for text in blocks("") if text.startswith("godwit execute")]
    statements = [word for word in shlex.split(block) if word.startswith("CREATE")]
    assert len(statements) == 3
    cluster = Cluster(
        SupervisedSpark(lambda: spark),
        DataClusterSettings(folder=str(tmp_path)),
        on_results=lambda: None,
    )
    try:
        for statement in statements:
            cluster.execute(statement)
        (made,) = cluster.channels.all()
        assert made.channel.name == "TooWarm"
    finally:
        cluster.close()
