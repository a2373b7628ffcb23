"""Speed of the matching index against evaluating every filter, on two workloads.

    python -m benchmarks matching [--quick]

W1  stock quotes (godwit.workloads.stocks): equality does most of the work.
W2  ranges only (benchmarks/ranges.py): no equality at all.

A match is timed up to its result and the number of keys in it, without iterating over the keys.
Every record that is timed against the naive index is first checked to give the same keys.  Times
are medians of several passes, in processor time, because the machine may be busy; loading a million
filters is measured in wall time.
"""

from __future__ import annotations

import gc
import pickle
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from random import Random

from tests.matching.naive import NaiveIndex

from benchmarks.ranges import RangeWorkload
from benchmarks.report import Row
from godwit.content.filters import Filter
from godwit.content.values import Record
from godwit.matching.index import MatchingIndex
from godwit.workloads.stocks import StockMarket

SEED = 1
RECORDS = 1_024
PASSES = 5
PASS_MIN_S = 0.1
CHURN_SLICES = 20


class Workload:
    """Random filters and records; `filters` caches, because making them is slow."""

    def __init__(
        self, name: str, filter: Callable[[], Filter], record: Callable[[], Record]
    ) -> None:
        self.name = name
        self.filter = filter
        self.record = record
        self._made: list[Filter] = []

    def filters(self, size: int) -> list[Filter]:
        while len(self._made) < size:
            self._made.append(self.filter())
        return self._made[:size]

    def index(self, size: int) -> MatchingIndex[int]:
        index: MatchingIndex[int] = MatchingIndex()
        for key, filter in enumerate(self.filters(size)):
            index.add(key, filter)
        return index

    def naive(self, size: int) -> NaiveIndex[int]:
        naive: NaiveIndex[int] = NaiveIndex()
        for key, filter in enumerate(self.filters(size)):
            naive.add(key, filter)
        return naive


def stock_quotes() -> Workload:
    random = Random(SEED)
    market = StockMarket(random)
    return Workload(
        "W1",
        filter=lambda: market.template_filter(random.choice(market.symbols)),
        record=lambda: market.quote(random.choice(market.symbols)),
    )


def ranges() -> Workload:
    generator = RangeWorkload(Random(SEED))
    return Workload("W2", generator.filter, generator.record)


def seconds(
    *works: Callable[[], object], passes: int = PASSES, pass_min_s: float = PASS_MIN_S
) -> list[float]:
    """The median processor time of each of `works`, which take turns.

    Short work is repeated in a row, so that refilling the caches is not what is timed: the naive
    index reads every filter.
    """
    # What was built before cannot become garbage now; a collection that visits a million objects
    # to find that out would be timed as matching.
    gc.collect()
    gc.freeze()
    times: list[list[float]] = [[] for _ in works]
    for _ in range(passes):
        for work, taken in zip(works, times, strict=True):
            laps, start = 0, time.process_time()
            while not laps or time.process_time() - start < pass_min_s:
                work()
                laps += 1
            taken.append((time.process_time() - start) / laps)
    gc.unfreeze()
    return list(map(statistics.median, times))


def throughput(
    workload: Workload, size: int, *, bar: float | None = None, naive_records: int = 16
) -> list[Row]:
    """Records matched per second, against evaluating every filter."""
    index, naive = workload.index(size), workload.naive(size)
    records = [workload.record() for _ in range(RECORDS)]
    few = records[:naive_records]
    for record in few:
        expected = sorted(naive.match(record))
        assert sorted(index.match(record)) == expected, f"{workload.name}: {record}"

    def match_naively() -> None:
        for record in few:
            len(naive.match(record))

    def match() -> None:
        for record in records:
            len(index.match(record))

    naive_s, index_s = seconds(match_naively, match)
    base, measured = len(few) / naive_s, len(records) / index_s
    return [Row("single, 1/s", workload.name, size, base, measured, measured / base, bar)]


def memory(workload: Workload, size: int, *, bar: float | None = None) -> list[Row]:
    """Bytes for each filter, none of which is shared with other objects."""
    pickled = [pickle.dumps(filter) for filter in workload.filters(size)]
    record = workload.record()
    gc.collect()
    tracemalloc.start()
    index: MatchingIndex[int] = MatchingIndex()
    for key, data in enumerate(pickled):
        index.add(key, pickle.loads(data))  # noqa: S301 (our own, see above)
    index.match(record)
    gc.collect()
    bytes_traced, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(index) == size
    each = bytes_traced / size
    return [Row("bytes/filter", workload.name, size, None, each, each, bar, is_at_most=True)]


def load(workload: Workload, size: int, *, bar_s: float | None = None) -> list[Row]:
    """Seconds to add `size` filters; the bar is for making the filters as well."""
    index: MatchingIndex[int] = MatchingIndex()
    keys = iter(range(size))
    adding_s = 0.0
    start_all = time.perf_counter()
    for _ in range(0, size, 10_000):
        filters = [(key, workload.filter()) for key in islice(keys, 10_000)]
        start = time.perf_counter()
        for key, filter in filters:
            index.add(key, filter)
        adding_s += time.perf_counter() - start
    index.match(workload.record())
    total_s = time.perf_counter() - start_all
    assert len(index) == size
    records = [workload.record() for _ in range(RECORDS // 4)]
    (matching_s,) = seconds(lambda: [len(index.match(record)) for record in records])
    per_s = len(records) / matching_s
    name = workload.name
    return [
        Row("add, s", name, size, None, adding_s, adding_s),
        Row("make and add, s", name, size, None, total_s, total_s, bar_s, is_at_most=True),
        Row("single, 1/s", name, size, None, per_s, per_s),
    ]


def churn(
    workload: Workload, size: int, *, changes: int = 10_000, bar: float | None = None
) -> list[Row]:
    """Records matched per second with a change before each, against none, slice by slice."""
    index = workload.index(size)
    fresh = [workload.filter() for _ in range(changes // 2)]
    records = [workload.record() for _ in range(1000)]
    leaving = Random(SEED).sample(range(size), changes // 2)
    steps = iter(range(changes))

    def match_only() -> None:
        for record in islice(cycle(records), changes // CHURN_SLICES):
            len(index.match(record))

    def match_and_change() -> None:
        for record in islice(cycle(records), changes // CHURN_SLICES):
            step = next(steps)
            if step % 2:
                index.add(size + step, fresh[step // 2])
            else:
                index.remove(leaving[step // 2])
            len(index.match(record))

    match_only()
    static_s, changing_s, ratios = [], [], []
    for _ in range(CHURN_SLICES):
        static_s += seconds(match_only, passes=1, pass_min_s=0)
        changing_s += seconds(match_and_change, passes=1, pass_min_s=0)
        ratios.append(static_s[-1] / changing_s[-1])
    static = changes / CHURN_SLICES / statistics.median(static_s)
    changing = static * statistics.median(ratios)
    return [Row("churn, 1/s", workload.name, size, static, changing, changing / static, bar)]


def rows(*, quick: bool) -> Iterator[list[Row]]:
    """All measurements, one by one."""
    w1, w2 = stock_quotes(), ranges()
    yield throughput(w1, 100)
    yield throughput(w1, 10_000, bar=300)
    yield throughput(w2, 100)
    yield throughput(w2, 10_000, bar=25)
    if quick:
        yield memory(w1, 10_000)
        yield churn(w1, 10_000, changes=2_000)
        return
    yield throughput(w1, 100_000, bar=1_500)
    yield throughput(w2, 100_000, bar=70)
    yield memory(w1, 100_000, bar=250)
    yield memory(w2, 100_000, bar=700)
    yield churn(w1, 100_000, bar=1 / 3)
    yield churn(w2, 100_000, bar=1 / 3)
    yield load(w1, 1_000_000, bar_s=120)
