"""The one Spark session of a process."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from godwit.spark.java import java_home

LOCAL = "local[*]"
#: The default starts a process for each link that a file might be, five for a checkpoint.
CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
QUIET = Path(__file__).with_name("log4j2.properties")


def spark_session(
    master: str = LOCAL, *, application: str = "godwit", for_small: bool = False
) -> SparkSession:
    """The session of this process; started if there is none.

    `for_small` is for many small queries, which take half as long with it: Java compiles in haste,
    and a query is planned once.
    """
    java_options = f"-Dlog4j2.configurationFile={QUIET.as_uri()}"
    if for_small:
        java_options += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    os.environ["JAVA_HOME"] = str(java_home())  # Not what was there: that may be too old.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 2
    session: SparkSession = (
        SparkSession.builder.master(master)
        .appName(application)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        # The default of 200 makes small queries ten times slower.
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
        # Nothing is kept there, but Spark makes the folder: by default where it is started.
        .config("spark.sql.warehouse.dir", str(Path(tempfile.gettempdir(), "godwit-warehouse")))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.sql.adaptive.enabled", str(not for_small).lower())
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    # Says with all of Spark's stack what is raised anyway.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    return session
