"""Duration and balance of the shuffle as a Spark job, at full size.

python -m benchmarks.planning_on_spark [--subscribers 1000000] [--be 100000] [--brokers 10]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.coordinator.planning_on_spark import plan_on_spark
from godwit.spark.session import spark_session

FILES = 8
HELD_MIN, HELD_MAX = 10, 30
RATE_MEAN, RATE_DEVIATION, RATE_MIN = 20e3, 4e3, 1e3


def write_holdings(folder: Path, subscribers: int, be: int, random: np.random.Generator) -> int:
    """10 to 30 BE subscriptions for each subscriber, drawn uniformly; returns how many in all."""
    total = 0
    for number, people in enumerate(np.array_split(np.arange(subscribers), FILES)):
        counts = random.integers(HELD_MIN, HELD_MAX + 1, len(people))
        held = _without_repetition(np.repeat(people, counts), be, random)
        starts = np.concatenate(([0], np.cumsum(counts)))
        lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(held, pa.int32()))
        table = pa.table({"subscriber": pa.array(people, pa.int64()), "held": lists})
        pq.write_table(table, folder / f"{number}.parquet")
        total += len(held)
    return total


def _without_repetition(
    owners: npt.NDArray[np.int64], be: int, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    held = random.integers(0, be, len(owners))
    while True:
        _, first = np.unique(owners * be + held, return_index=True)
        if len(first) == len(held):
            return held
        again = np.ones(len(held), dtype=bool)
        again[first] = False
        held[again] = random.integers(0, be, int(again.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subscribers", type=int, default=1_000_000)
    parser.add_argument("--be", type=int, default=100_000)
    parser.add_argument("--brokers", type=int, default=10)
    given = parser.parse_args()
    random = np.random.default_rng(1)
    rates = np.maximum(random.normal(RATE_MEAN, RATE_DEVIATION, given.be), RATE_MIN)
    with TemporaryDirectory(prefix="godwit-") as name:
        fe = write_holdings(Path(name), given.subscribers, given.be, random)
        session = spark_session("local[*]", application="planning")
        try:
            start = perf_counter()
            made = plan_on_spark(session.read.parquet(name), rates, given.brokers)
            planned_s = perf_counter() - start
        finally:
            session.stop()
    bound = (made.loads.outgoing.sum() + rates.sum()) / given.brokers
    print(f"{given.subscribers:,} subscribers, {fe:,} FE and {given.be:,} BE subscriptions")
    print(f"planned in {planned_s:.0f} s, {made.groups:,} groups, cov {made.loads.cov:.5f}")
    print(f"{made.loads.maximum / bound - 1:.2%} above the bound by the total")


if __name__ == "__main__":
    main()
