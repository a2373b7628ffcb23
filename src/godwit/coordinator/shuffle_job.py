"""The process of a shuffle on Spark: reads holdings.npz, writes home.npy (spark_shuffle.py).

python -m godwit.coordinator.shuffle_job FOLDER MASTER BROKERS
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from godwit.coordinator.planning_on_spark import assign_on_spark
from godwit.coordinator.spark_shuffle import HOLDINGS, HOME
from godwit.policies.staged.loads import Ints, Starts
from godwit.spark.session import spark_session


def holdings_frame(session: SparkSession, starts: Starts, held: Ints) -> DataFrame:
    """A row for each subscriber, in one partition for each core.

    Each partition sends on a vector for each group: with fewer rows in each, it would send more.
    """
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(held, pa.int32()))
    numbers = pa.array(np.arange(len(starts) - 1), pa.int64())
    frame = session.createDataFrame(pa.table({"subscriber": numbers, "held": lists}))
    return frame.coalesce(session.sparkContext.defaultParallelism)


def main() -> None:
    folder, master, brokers = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with np.load(folder / HOLDINGS) as given:
        starts, held, rates = given["starts"], given["held"], given["rates"]
    session = spark_session(master, application="godwit shuffle")
    try:
        holdings = holdings_frame(session, starts, held)
        assigned, _ = assign_on_spark(holdings, rates, brokers)
        found = assigned.select("subscriber", "broker").toArrow()
    finally:
        session.stop()
    home = np.zeros(len(starts) - 1, dtype=np.int32)
    home[found.column("subscriber").to_numpy()] = found.column("broker").to_numpy()
    np.save(folder / HOME, home)


if __name__ == "__main__":
    main()
