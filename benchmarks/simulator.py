"""Messages that simulated brokers handle in a second of wall time, and the memory that takes.

    python -m benchmarks simulator [--quick]

GS1  the thesis's cluster setup: 127 brokers, 30 publishers, 6,000 subscribers, each publisher's
     spread over 16 brokers; the full run is 18 simulated minutes.

The reference is the bare agenda: empty actions planned and executed in a second.  It stands for the
machine, so ratios can be compared between machines, speeds cannot.  Speeds are measured over slices
of a run, with the bare agenda measured around each; the median is reported.  "checked" is with the
oracle; the bar is for the simulator without it.  The brokers' own invariants are checked in tests
only.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Iterator

from benchmarks.report import Row
from benchmarks.usage import peak_mebibytes
from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.simulation.agenda import Agenda
from godwit.simulation.oracle import Oracle
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics

SEED = 1
SLICES = 30
QUIET_S = 10.0
HANDLED_PER_S_BAR = 50_000
MEMORY_MIB_BAR = 2048
MINUTES_BAR = 10
BARE_EVENTS = 20_000


def bare_agenda_per_s() -> float:
    agenda = Agenda()
    start = time.perf_counter()
    for number in range(BARE_EVENTS):
        agenda.plan(float(number % 97), _nothing)
    agenda.run(until_s=100.0)
    return BARE_EVENTS / (time.perf_counter() - start)


def _nothing() -> None:
    pass


def speed(scenario: StockScenario, *, checked: bool, bar: float | None) -> Row:
    """Messages handled per second while publishing, over slices of the run."""
    counted = Statistics()
    observers = (counted, Oracle(settle_s=QUIET_S)) if checked else (counted,)
    simulator = scenario.build(seed=SEED, observers=observers, check=False)
    simulator.run(until_s=scenario.joining_s)
    slice_s = (scenario.duration_s - scenario.joining_s) / SLICES
    speeds, ratios = [], []
    for number in range(1, SLICES + 1):
        before = bare_agenda_per_s()
        handled, start = counted.handled, time.perf_counter()
        simulator.run(until_s=scenario.joining_s + number * slice_s)
        speeds.append((counted.handled - handled) / (time.perf_counter() - start))
        ratios.append(speeds[-1] / ((before + bare_agenda_per_s()) / 2))
    measured = statistics.median(speeds)
    name = "handled/s, checked" if checked else "handled/s"
    reference = measured / statistics.median(ratios)
    return Row(name, "GS1", _subscribers(scenario), reference, measured, measured, bar)


def full_run(scenario: StockScenario) -> tuple[float, float, int, int, int]:
    """Minutes, MiB, messages handled, deliveries and violations of a whole run."""
    start = time.perf_counter()
    oracle, counted = Oracle(settle_s=QUIET_S), Statistics()
    simulator: Simulator = scenario.build(seed=SEED, observers=(oracle, counted), check=False)
    simulator.run(until_s=scenario.duration_s + QUIET_S)
    oracle.finish(simulator.now_s)
    minutes = (time.perf_counter() - start) / 60
    return minutes, peak_mebibytes(), counted.handled, counted.deliveries, oracle.violation_count


def rows(*, quick: bool) -> Iterator[list[Row]]:
    short = StockScenario(duration_s=100.0 if quick else 180.0)
    yield [speed(short, checked=False, bar=HANDLED_PER_S_BAR)]
    yield [speed(short, checked=True, bar=None)]
    whole = StockScenario(duration_s=120.0 if quick else 18 * 60.0)
    # In a separate process, so that the peak of memory is that of this run.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        minutes, mebibytes, handled, deliveries, violations = pool.apply(full_run, (whole,))
    figures = [
        ("minutes", minutes, MINUTES_BAR),
        ("MiB", mebibytes, MEMORY_MIB_BAR),
        ("violations", violations, 0),
        ("handled", handled, None),
        ("deliveries", deliveries, None),
    ]
    run, size = f"{whole.duration_s / 60:.0f} min run", _subscribers(whole)
    yield [
        Row(f"{run}, {name}", "GS1", size, None, figure, figure, bar, is_at_most=True)
        for name, figure, bar in figures
    ]


def _subscribers(scenario: StockScenario) -> int:
    return scenario.publishers * scenario.subscribers_per_publisher
