"""A shuffle as a Spark job of its own: what it assigns, how it fails, how it is stopped."""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest
from pyspark.sql import SparkSession
from tests.coordinator.scenes import QUICK, report

from godwit.coordinator import spark_shuffle
from godwit.coordinator.deciding import decide
from godwit.coordinator.planning_on_spark import plan_on_spark
from godwit.coordinator.shuffle_job import holdings_frame
from godwit.coordinator.situation import situation
from godwit.coordinator.spark_shuffle import ShuffleFailedError, SparkShuffle, check_spark
from godwit.errors import UsageError
from godwit.policies.staged.loads import Ints, Subscribers, loads
from godwit.policies.staged.planning import BalancingStage
from godwit.policies.staged.shuffle import greedy_shuffle


def crowd(n: int = 300, q: int = 40) -> Subscribers:
    """With whole rates: their sums do not depend on the order."""
    random = np.random.default_rng(3)
    holdings = [random.choice(q, random.integers(0, 6), replace=False).tolist() for _ in range(n)]
    return Subscribers.of(holdings, random.integers(1, 9, q).astype(np.float64))


def program(text: str) -> tuple[str, ...]:
    """A job of another kind: argv[1] is its folder."""
    return sys.executable, "-c", f"import sys, numpy as np\n{text}"


# -- jobs that work ------------------------------------------------------------------------------


def test_the_job_assigns_what_planning_on_spark_says(spark: SparkSession) -> None:
    subscribers = crowd()
    home = SparkShuffle("local[2]", limit_s=600.0)(subscribers, 4)

    frame = holdings_frame(spark, subscribers.starts, subscribers.held)
    made = plan_on_spark(frame, subscribers.rates, 4)
    expected = np.zeros(subscribers.n, dtype=np.int32)
    for row in made.assigned.collect():
        expected[row["subscriber"]] = row["broker"]
    assert home.tolist() == expected.tolist()
    assert loads(subscribers, home, 4).total.tolist() == made.loads.total.tolist()
    assert loads(subscribers, home, 4).cov < 0.05


def test_a_frame_has_no_more_partitions_than_cores(spark: SparkSession) -> None:
    subscribers = crowd(30_000)
    frame = holdings_frame(spark, subscribers.starts, subscribers.held)
    assert frame.rdd.getNumPartitions() <= spark.sparkContext.defaultParallelism
    assert frame.count() == subscribers.n


# -- jobs that fail: S1 --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "limit_s", "why"),
    [
        pytest.param(program("sys.exit('no disk')"), 60.0, "exit code 1: no disk", id="fails"),
        pytest.param(program("sys.stdin.read()"), 0.0, "no result within 0 s", id="too slow"),
        pytest.param(program("pass"), 60.0, "home.npy", id="no result"),
        pytest.param(
            program("np.save(sys.argv[1] + '/home.npy', np.full(300, 4, np.int32))"),
            60.0, "there are 4", id="a broker that does not exist",
        ),
        pytest.param(
            program("open(sys.argv[1] + '/home.npy', 'w').write('x' * 99)"),
            60.0, "allow_pickle", id="a broken file",
        ),
        pytest.param(("/no/such/program",), 60.0, "/no/such/program", id="cannot start"),
    ],
)  # fmt: skip
def test_a_job_that_fails_is_replaced_by_the_greedy_shuffle(
    job: tuple[str, ...], limit_s: float, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    subscribers = crowd()
    with caplog.at_level(logging.WARNING, logger="godwit.coordinator"):
        home = SparkShuffle("local[2]", limit_s, job)(subscribers, 4)
    assert home.tolist() == greedy_shuffle(subscribers, 4).tolist()
    (record,) = caplog.records
    assert why in record.__dict__["why"]


# -- stopping: S2 --------------------------------------------------------------------------------


def test_a_running_job_ends_when_the_coordinator_stops(tmp_path: Path) -> None:
    pipe = tmp_path / "started"
    os.mkfifo(pipe)
    shuffle = SparkShuffle("local[2]", 600.0, program(f"open({str(pipe)!r}).read()"))
    failures: list[Exception] = []

    def shuffle_it() -> None:
        try:
            shuffle(crowd(), 4)
        except ShuffleFailedError as error:
            failures.append(error)

    thread = threading.Thread(target=shuffle_it)
    thread.start()
    with pipe.open("w"):  # Opens when the job has started; the job waits for its end.
        shuffle.close()
        thread.join()
    assert "exit code -9" in str(failures[0])


def test_after_the_stop_no_job_starts() -> None:
    shuffle = SparkShuffle("local[2]", 600.0, ("/no/such/program",))
    shuffle.close()
    shuffle.close()
    with pytest.raises(ShuffleFailedError, match="stopping"):
        shuffle(crowd(), 4)


# -- who is shuffled on Spark --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spark_from", "on_spark"),
    [(None, False), (7, False), (6, True), (1, True)],
    ids=["never", "more than there are", "as many as there are", "any number"],
)
def test_a_shuffle_of_many_is_on_spark(spark_from: int | None, on_spark: bool) -> None:
    settings = msgspec.structs.replace(QUICK, gamma=0.2, spark_from=spark_from)
    shuffled: list[int] = []

    def shuffler(subscribers: Subscribers, m: int) -> Ints:
        shuffled.append(subscribers.n)
        return greedy_shuffle(subscribers, m)

    reports = [report("B1", [f"s{n}" for n in range(6)]), report("B2")]
    decision = decide(situation(reports, {}), frozenset(), settings, shuffler)

    assert decision.stage is BalancingStage.SHUFFLE
    assert len(decision.moves) == 3
    assert shuffled == ([6] if on_spark else [])


def test_a_migration_is_not_on_spark() -> None:
    def shuffler(_subscribers: Subscribers, _m: int) -> Ints:
        raise AssertionError("only stage 3 is")

    settings = msgspec.structs.replace(QUICK, spark_from=1)
    reports = [report("B1", ["s1", "s2"]), report("B2")]
    decision = decide(situation(reports, {}), frozenset(), settings, shuffler)
    assert decision.stage is BalancingStage.MIGRATING


# -- without Spark -------------------------------------------------------------------------------


def test_spark_is_there_or_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    check_spark()
    monkeypatch.setattr(spark_shuffle, "find_spec", lambda name: None if name == "pyarrow" else 1)
    with pytest.raises(UsageError, match=r"needs the package pyarrow: .*\[datacluster\]"):
        check_spark()
