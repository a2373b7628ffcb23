"""The one Spark session of a process."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from godwit.spark.java import java_home
from godwit.spark.memory import EXECUTOR_MIB

LOCAL = "local[*]"
#: The default starts processes to resolve symbolic links, five for each checkpoint.
CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
MEMORY_MIB = 2_048
QUIET = Path(__file__).with_name("log4j2.properties")


def spark_session(
    master: str = LOCAL,
    *,
    application: str = "godwit",
    for_small: bool = False,
    memory_mib: int = MEMORY_MIB,
    executor_memory_mib: int = EXECUTOR_MIB,
) -> SparkSession:
    """The session of this process; started if necessary.

    `memory_mib` is the driver's; with a local master, that is all there is.
    `for_small` halves the time of small queries: Java compiles less, and Spark does not replan.
    """
    java_options = f"-Dlog4j2.configurationFile={QUIET.as_uri()} -XX:+ExitOnOutOfMemoryError"
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
        # What runs at the same time shares the cores; by default the first job gets them all.
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", f"{memory_mib}m")
        # A result that comes to the driver is refused before it fills the memory.
        .config("spark.driver.maxResultSize", f"{memory_mib // 4}m")
        .config("spark.executor.memory", f"{executor_memory_mib}m")
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.sql.adaptive.enabled", str(not for_small).lower())
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    # Logs errors that are raised anyway, with all of Spark's stack.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    return session


def java_process(session: SparkSession) -> subprocess.Popen[bytes] | None:
    """The Java process that this process has started for the session."""
    gateway = session.sparkContext._gateway  # noqa: SLF001  There is no public way.
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    return process


def forget_session() -> None:
    """Make way for another session: the Java process of the last one has died.

    pyspark keeps it in these variables, and would go on with it.
    """
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is not None:
        gateway.shutdown()
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkSession._activeSession = None  # noqa: SLF001
