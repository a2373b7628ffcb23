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
#: The default starts processes to resolve symbolic links, five for each checkpoint.
CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
QUIET = Path(__file__).with_name("log4j2.properties")


def spark_session(
    master: str = LOCAL, *, application: str = "godwit", for_small: bool = False
) -> SparkSession:
    """The session of this process; started if necessary.

    `for_small` halves the time of small queries: Java compiles less, and Spark does not replan.
    """
    java_options = f"-Dlog4j2.configurationFile={QUIET.as_uri()}"
    if for_small:
        java_options += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    os.environ["JAVA_HOME"] = str(java_home())  # Overrides one that is too old.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 2
    # Workers on other machines call the driver: Spark's own variable names an address they reach.
    host = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    session: SparkSession = (
        SparkSession.builder.master(master)
        .appName(application)
        .config("spark.driver.host", host)
        .config("spark.driver.bindAddress", host)
        .config("spark.sql.session.timeZone", "UTC")
        # The default of 200 makes small queries ten times slower.
        .config("spark.sql.shuffle.partitions", str(cores))
        .config("spark.sql.streaming.checkpointFileManagerClass", CHECKPOINTS)
        # Unused, but Spark creates it; by default in the working directory.
        .config("spark.sql.warehouse.dir", str(Path(tempfile.gettempdir(), "godwit-warehouse")))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.sql.adaptive.enabled", str(not for_small).lower())
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    # Logs errors that are raised anyway, with all of Spark's stack.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    return session
