"""What a trace costs the simulator, and how fast the metrics read a long one.

    python -m benchmarks traces [--quick]

The cost is measured on GS1 while publishing: two simulations take turns, slice by slice, one of
them traced; in processor time, because on a busy machine the wall clock also measures other
processes.  The writing thread is included.  The first turn is slower, because libraries are loaded;
the median of several is reported.

The long trace is a short one repeated, with later times, higher numbers and different delays.  The
metrics run in a separate process, so that the peak of memory is theirs.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Row
from benchmarks.usage import peak_mebibytes
from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.lab.metrics import STAGES
from godwit.lab.metrics.reading import read_trace
from godwit.lab.metrics.stages import Span
from godwit.simulation.observers import Observer
from godwit.simulation.simulation_trace import SimulationTrace
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics
from godwit.spark.session import spark_session
from godwit.trace.recorder import Recorder
from godwit.trace.rows import ROWS_PER_GROUP
from godwit.trace.schema import TABLES
from godwit.trace.writer import ROWS_PER_FILE, TraceWriter

SEED = 1
SCENARIO = StockScenario(duration_s=100.0)
SUBSCRIBERS = SCENARIO.publishers * SCENARIO.subscribers_per_publisher
SLICES = 40
TRACED_SPEED_BAR = 0.75
#: Spark's heap is 2 GiB; the rest is Java's own.
JAVA_MIB_BAR = 3_072
ROWS, ROWS_QUICK = 20_000_000, 1_000_000


def traced_speed(folder: Path, *, turns: int) -> Row:
    speeds, ratios = [], []
    TraceWriter(folder / "nothing").close()  # Libraries are loaded when they are first used.
    for turn in range(turns):
        per_s, ratio = _turn(folder / str(turn))
        speeds.append(per_s)
        ratios.append(ratio)
    reference, ratio = statistics.median(speeds), statistics.median(ratios)
    return Row(
        "traced speed, handled/s of CPU", "GS1", SUBSCRIBERS, reference, ratio * reference, ratio,
        TRACED_SPEED_BAR,
    )  # fmt: skip


def _turn(folder: Path) -> tuple[float, float]:
    """Messages handled in a second of processor time without a trace; the ratio with one."""
    counted = Statistics()
    untraced = _joined(counted)
    with TraceWriter(folder) as writer:
        tracing = SimulationTrace(Recorder(writer))
        traced = _joined(Statistics(), tracing)
        tracing.read_gauges(traced)
        handled, untraced_s, start_s = counted.handled, 0.0, time.process_time()
        for number in range(1, SLICES + 1):
            until_s = SCENARIO.joining_s + number * _publishing_s() / SLICES
            slice_start_s = time.thread_time()
            untraced.run(until_s=until_s)
            untraced_s += time.thread_time() - slice_start_s
            traced.run(until_s=until_s)
    # The rest of the processor time was for the traced one.
    traced_s = time.process_time() - start_s - untraced_s
    return (counted.handled - handled) / untraced_s, untraced_s / traced_s


def _joined(*observers: Observer) -> Simulator:
    simulator = SCENARIO.build(seed=SEED, observers=observers, check=False)
    simulator.run(until_s=SCENARIO.joining_s)
    return simulator


def _publishing_s() -> float:
    return SCENARIO.duration_s - SCENARIO.joining_s


def prolong(short: Path, folder: Path, *, rows: int) -> float:
    """Write a trace of so many rows; returns its end."""
    tables = {name: pq.read_table(short / name, schema=TABLES[name]) for name in TABLES}
    times: int = -(-rows // sum(table.num_rows for table in tables.values()))
    random = np.random.default_rng(SEED)
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        per_file = max(1, ROWS_PER_FILE // max(1, table.num_rows))
        for start in range(0, times, per_file):
            path = folder / name / f"{start:05d}.parquet"
            with pq.ParquetWriter(path, TABLES[name]) as file:
                for number in range(start, min(start + per_file, times)):
                    file.write_table(_later(table, number, random), row_group_size=ROWS_PER_GROUP)
    return times * SCENARIO.duration_s


def _later(table: pa.Table, number: int, random: np.random.Generator) -> pa.Table:
    """A copy of the table, `number` runs later."""
    columns = dict(zip(table.column_names, table.columns, strict=True))
    columns["time_s"] = pa.array(columns["time_s"].to_numpy() + number * SCENARIO.duration_s)
    if "sequence" in columns:
        present = columns["sequence"].fill_null(-1).to_numpy()
        columns["sequence"] = pa.array(present + number * (present.max() + 1), mask=present < 0)
    if "delay_s" in columns:
        delays_s = columns["delay_s"].to_numpy()
        columns["delay_s"] = pa.array(delays_s * random.uniform(0.9, 1.1, len(delays_s)))
    return pa.table(columns, schema=table.schema)


def stage_speeds(folder: Path, end_s: float) -> list[Row]:
    """Each metric over the whole trace: rows per second of the tables it reads."""
    session = spark_session(application="benchmark")
    trace = read_trace(session, folder)
    rows = {name: frame.count() for name, frame in trace.items()}
    over = Span(0.0, end_s)
    found, total_s = [], 0.0
    for name, stage in STAGES.items():
        start = time.perf_counter()
        stage(trace, over).write.format("noop").mode("overwrite").save()
        spent_s = time.perf_counter() - start
        total_s += spent_s
        read = sum(rows[table] for table in stage.reads)
        found.append(Row(f"{name}, rows/s", "trace", read, None, read / spent_s, read / spent_s))
    size = sum(rows.values())
    found.append(Row("all metrics, s", "trace", size, None, total_s, total_s))
    gateway = session.sparkContext._gateway  # noqa: SLF001  Has no public name.
    assert gateway is not None
    java, python = peak_mebibytes(gateway.proc.pid), peak_mebibytes("self")
    session.stop()
    return [
        *found,
        Row("MiB of Java", "trace", size, None, java, java, JAVA_MIB_BAR, is_at_most=True),
        Row("MiB of Python", "trace", size, None, python, python),
    ]


def rows(*, quick: bool) -> Iterator[list[Row]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield [traced_speed(folder, turns=3 if quick else 5)]
        end_s = prolong(folder / "0", folder / "long", rows=ROWS_QUICK if quick else ROWS)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            yield pool.apply(stage_speeds, (folder / "long", end_s))
