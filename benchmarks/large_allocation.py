"""CRAM on Spark: time, memory and quality, with the subscriptions of RS4.

python -m benchmarks.large_allocation [--sizes 10000 100000 1000000] [--compare-up-to 10000]

Each publisher has its own stock, with 1,280 quotes in its window.  40% of the subscriptions want
all of them; 60% have one inequality with a value the stock has shown.  Brokers can send 1 MB/s;
there are 1,000 for 1,000,000 subscriptions.  Spark makes the profiles, a publisher in each row, and
writes them as Parquet files: that is not part of the time.  Sizes up to `--compare-up-to` are also
planned on one machine, from the same profiles.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from benchmarks.usage import processes_mebibytes
from godwit.lab.large_plans.gif_frames import SUBSCRIBERS
from godwit.lab.large_plans.large_plan import LargePlan, planned_on_spark
from godwit.policies.allocation.algorithms import allocate
from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.gathered_reading import AllocationProblem, SubscriberProfile
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.plan_writing import written
from godwit.policies.allocation.settings import AllocationSettings
from godwit.policies.large_allocation.profile_bytes import decoded, encoded_block
from godwit.profile.matching_delay import MatchingDelay
from godwit.spark.session import spark_session

WINDOW = 1_280
RATE_PER_S = 70 / 60
QUOTE_BYTES = 400
ATTRIBUTES = 7
WHOLE_STOCK = 0.4
BROKER_BYTES_S = 1e6
MATCHING = MatchingDelay(1e-6, 1e-4)
SAMPLE_S = 2.0


def publishers_for(subscriptions: int) -> int:
    return max(40, subscriptions // 1_000)


def table_of(publishers: int) -> PublisherTable:
    return PublisherTable(
        ids=tuple(f"S{p:04}" for p in range(publishers)),
        rates_per_s=(RATE_PER_S,) * publishers,
        bandwidths_bytes_s=(RATE_PER_S * QUOTE_BYTES,) * publishers,
        lengths=(WINDOW,) * publishers,
        vector_length=WINDOW,
        brokers=(None,) * publishers,
        clients=(None,) * publishers,
    )


def brokers_for(subscriptions: int) -> list[BrokerCapacity]:
    count = max(80, subscriptions // 1_000)
    return [BrokerCapacity(f"B{b:04}", BROKER_BYTES_S, MATCHING) for b in range(count)]


def quotes(random: np.random.Generator) -> npt.NDArray[np.float64]:
    """A random walk of prices and its derived attributes, one column for each quote."""
    close = np.round(20 * np.exp(np.cumsum(random.normal(0, 0.02, WINDOW))), 2)
    opened = np.round(close * np.exp(random.normal(0, 0.01, WINDOW)), 2)
    high = np.round(np.maximum(opened, close) * np.exp(random.exponential(0.005, WINDOW)), 2)
    low = np.round(np.minimum(opened, close) * np.exp(-random.exponential(0.005, WINDOW)), 2)
    volume = np.round(random.lognormal(10, 1, WINDOW), -2)
    change = np.round(abs(opened - close) / opened, 4)
    return np.array([opened, high, low, close, volume, change, np.round((high - low) / low, 4)])


def profiles_of(p: int, count: int, seed: int) -> list[bytes]:
    """Profiles of the subscriptions to one stock."""
    random = np.random.default_rng((seed, p))
    shown = quotes(random)
    chosen, attribute = random.integers(0, WINDOW, count), random.integers(0, ATTRIBUTES, count)
    values = shown[attribute]
    limits = values[np.arange(count), chosen][:, None]
    bits = np.where(random.random(count)[:, None] < 0.5, values < limits, values > limits)
    bits[random.random(count) < WHOLE_STOCK] = True
    packed = np.packbits(bits, axis=1, bitorder="little")
    return [encoded_block(p, row.tobytes()) if row.any() else b"" for row in packed]


def write_subscribers(session: SparkSession, folder: Path, subscriptions: int, seed: int) -> None:
    publishers = publishers_for(subscriptions)
    each = subscriptions // publishers

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for p in batch.column("id").to_pylist():
                yield pa.RecordBatch.from_pydict(
                    {
                        "subscriber": pa.array([f"s-{p}-{n}" for n in range(each)]),
                        "subscriptions": pa.array([1] * each, pa.int32()),
                        "broker": pa.array([None] * each, pa.string()),
                        "profile": pa.array(profiles_of(p, each, seed), pa.binary()),
                    }
                )

    session.range(0, publishers, 1, 8).mapInArrow(make, SUBSCRIBERS).write.parquet(str(folder))


def planned_here(
    frame: DataFrame, table: PublisherTable, brokers: list[BrokerCapacity]
) -> AllocationPlan:
    """The same profiles, planned by one process."""
    rows = frame.toArrow().sort_by("subscriber").to_pylist()
    subscribers = tuple(
        SubscriberProfile(
            row["subscriber"], (row["subscriber"],), decoded(row["profile"], table.words), None
        )
        for row in rows
    )
    problem, settings = (
        AllocationProblem(table, tuple(brokers), subscribers, {}),
        AllocationSettings(),
    )
    started_s = perf_counter()
    outcome = allocate(problem, settings, perf_counter)
    return written(problem, outcome, settings, lambda: perf_counter() - started_s)


class Peak:
    """The most memory of this process and all it has started, sampled."""

    def __init__(self) -> None:
        self.mebibytes = 0.0
        self._end = Event()
        self._thread = Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._end.wait(SAMPLE_S):
            self.mebibytes = max(self.mebibytes, processes_mebibytes())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()


def input_per_s(plan: AllocationPlan) -> float:
    return sum(broker.input_per_s for broker in plan.brokers)


def line(name: str, plan: AllocationPlan) -> str:
    return (
        f"  {name:6} {plan.seconds:8.1f} s  brokers {len(plan.brokers)} (at least "
        f"{plan.lower_bound_brokers})  input {input_per_s(plan):,.0f}/s (at least "
        f"{plan.lower_bound_traffic_per_s:,.0f})  clusters {plan.clusters:,}  "
        f"evaluations {plan.closeness_evaluations:,}"
    )


def measure(session: SparkSession, size: int, *, compared: bool, seed: int = 1) -> LargePlan:
    with TemporaryDirectory(prefix="godwit-") as name:
        folder = Path(name, "subscribers")
        write_subscribers(session, folder, size, seed)
        table, brokers = table_of(publishers_for(size)), brokers_for(size)
        frame = session.read.parquet(str(folder))
        clock: Callable[[], float] = perf_counter
        with (
            Peak() as peak,
            planned_on_spark(frame, table, brokers, AllocationSettings(), clock=clock) as made,
        ):
            made.assigned.write.parquet(str(Path(name, "assigned")))
            written_s = made.plan.seconds
        print(f"{size:,} subscriptions, {len(table.ids):,} publishers, {len(brokers):,} brokers")
        print(line("spark", made.plan))
        print(
            f"         {made.gifs:,} GIFs, {made.clusters:,} clusters for the last step, "
            f"peak {peak.mebibytes:,.0f} MiB, {written_s / size * 1e6:.0f} s for each million",
            flush=True,
        )
        if compared:
            print(line("here", planned_here(frame, table, brokers)), flush=True)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--compare-up-to", type=int, default=10_000)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    session = spark_session(given.master, application="large allocation")
    try:
        for size in given.sizes:
            measure(session, size, compared=size <= given.compare_up_to)
    finally:
        session.stop()


if __name__ == "__main__":
    main()
