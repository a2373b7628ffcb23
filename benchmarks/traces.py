"""What a trace costs the simulator, and how fast the metrics read a long one.

    python -m benchmarks traces [--quick]

The cost is measured on GS1 while publishing: simulations with and without a trace take turns, in
processor time, because on a busy machine the wall clock measures the neighbours.  The long trace
is a short one over and over, with later times, higher numbers and delays that are all different.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Row
from godwit.lab.metrics import STAGES
from godwit.lab.spark import read_trace, spark_session
from godwit.lab.stages import Span
from godwit.simulation.statistics import Statistics
from godwit.simulation.stock_scenario import StockScenario
from godwit.simulation.tracing import Tracing
from godwit.trace.recorder import Recorder
from godwit.trace.rows import ROWS_PER_GROUP
from godwit.trace.schema import TABLES
from godwit.trace.writer import ROWS_PER_FILE, TraceWriter

SEED = 1
SCENARIO = StockScenario(duration_s=100.0)
SUBSCRIBERS = SCENARIO.publishers * SCENARIO.subscribers_per_publisher
TRACED_SPEED_BAR = 0.75
#: Spark's heap is 2 GiB; the rest is Java's own.
JAVA_MIB_BAR = 3_072
ROWS, ROWS_QUICK = 20_000_000, 1_000_000


def handled_per_s(folder: Path | None) -> float:
    """Messages handled in a second of processor time while publishing; traced if into a folder."""
    counted = Statistics()
    if folder is None:
        simulator = SCENARIO.build(seed=SEED, observers=(counted,), check=False)
    else:
        writer = TraceWriter(folder)
        tracing = Tracing(Recorder(writer))
        simulator = SCENARIO.build(seed=SEED, observers=(counted, tracing), check=False)
        tracing.read_gauges(simulator)
    simulator.run(until_s=SCENARIO.joining_s)
    handled, start = counted.handled, time.process_time()
    simulator.run(until_s=SCENARIO.duration_s)
    if folder is not None:
        writer.close()
    return (counted.handled - handled) / (time.process_time() - start)


def traced_speed(folder: Path, *, turns: int) -> Row:
    handled_per_s(folder / "first")  # Libraries are loaded when they are first used.
    untraced, traced = [], []
    for turn in range(turns):
        untraced.append(handled_per_s(None))
        traced.append(handled_per_s(folder / str(turn)))
    ratio = statistics.median(
        with_ / without for with_, without in zip(traced, untraced, strict=True)
    )
    reference = statistics.median(untraced)
    return Row(
        "traced speed", "GS1", SUBSCRIBERS, reference, ratio * reference, ratio, TRACED_SPEED_BAR
    )


def prolong(short: Path, folder: Path, *, rows: int) -> float:
    """Write a trace of so many rows; the answer is when it ends."""
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
    """The table once more, `number` runs later."""
    columns = dict(zip(table.column_names, table.columns, strict=True))
    columns["time_s"] = pa.array(columns["time_s"].to_numpy() + number * SCENARIO.duration_s)
    if "sequence" in columns:
        present = columns["sequence"].fill_null(-1).to_numpy()
        columns["sequence"] = pa.array(present + number * (present.max() + 1), mask=present < 0)
    if "delay_s" in columns:
        delays_s = columns["delay_s"].to_numpy()
        columns["delay_s"] = pa.array(delays_s * random.uniform(0.9, 1.1, len(delays_s)))
    return pa.table(columns, schema=table.schema)


def stage_speeds(folder: Path, end_s: float) -> Iterator[Row]:
    """Each metric over the whole trace: rows of the tables it reads, in a second."""
    session = spark_session(application="benchmark")
    trace = read_trace(session, folder)
    rows = {name: frame.count() for name, frame in trace.items()}
    over = Span(0.0, end_s)
    for name, stage in STAGES.items():
        start = time.perf_counter()
        stage(trace, over).write.format("noop").mode("overwrite").save()
        read = sum(rows[table] for table in stage.reads)
        speed = read / (time.perf_counter() - start)
        yield Row(f"{name}, rows/s", "trace", read, None, speed, speed)
    gateway = session.sparkContext._gateway  # noqa: SLF001  There is no other way to it.
    assert gateway is not None
    java = gateway.proc.pid
    mebibytes = _peak_mebibytes(java)
    yield Row(
        "MiB of Java", "trace", sum(rows.values()), None, mebibytes, mebibytes, JAVA_MIB_BAR,
        is_at_most=True,
    )  # fmt: skip
    session.stop()


def _peak_mebibytes(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    (peak,) = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak[1]) / 1024


def rows(*, quick: bool) -> Iterator[list[Row]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        yield [traced_speed(folder, turns=3 if quick else 7)]
        end_s = prolong(folder / "first", folder / "long", rows=ROWS_QUICK if quick else ROWS)
        for row in stage_speeds(folder / "long", end_s):
            yield [row]
