"""The shuffle as a Spark job: the same loads as the model, and the same greedy algorithm."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.sweeps import seeds

from godwit.coordinator.planning_on_spark import loads_on_spark, plan_on_spark
from godwit.errors import UsageError
from godwit.policies.staged.bounds import lower_bound
from godwit.policies.staged.loads import Floats, Ints, Subscribers, loads
from godwit.policies.staged.shuffle import greedy_shuffle

#: More groups than there are numbers of subscribers: everybody is a group.
EVERYBODY = 10**6


def crowd(seed: int, *, n: int = 300, q: int = 40) -> Subscribers:
    random = np.random.default_rng(seed)
    holdings = [random.choice(q, random.integers(0, 6), replace=False).tolist() for _ in range(n)]
    return Subscribers.of(holdings, random.uniform(1.0, 9.0, q))


def framed(spark: SparkSession, subscribers: Subscribers, home: Ints | None = None) -> DataFrame:
    offsets = pa.array(subscribers.starts, pa.int32())
    held = pa.ListArray.from_arrays(offsets, pa.array(subscribers.held, pa.int32()))
    columns = {"subscriber": pa.array(range(subscribers.n), pa.int64()), "held": held}
    if home is not None:
        columns["broker"] = pa.array(home, pa.int32())
    return spark.createDataFrame(pa.table(columns)).repartition(3)


def home_of(assigned: DataFrame) -> Ints:
    table = assigned.toArrow().sort_by("subscriber")
    return np.asarray(table.column("broker").to_numpy(), dtype=np.int32)


def totals(subscribers: Subscribers, home: Ints, m: int) -> tuple[list[float], list[float]]:
    found = loads(subscribers, home, m)
    return found.incoming.tolist(), found.outgoing.tolist()


@pytest.mark.parametrize("seed", range(seeds(1, whole=3)))
def test_loads_are_those_of_the_model_to_the_last_bit(spark: SparkSession, seed: int) -> None:
    subscribers = crowd(seed)
    home = np.random.default_rng(seed).integers(0, 4, subscribers.n).astype(np.int32)

    found = loads_on_spark(framed(spark, subscribers, home), subscribers.rates, 4)

    assert (found.incoming.tolist(), found.outgoing.tolist()) == totals(subscribers, home, 4)


@pytest.mark.parametrize("seed", range(seeds(1, whole=2)))
def test_if_everybody_is_a_group_it_is_the_greedy_shuffle(spark: SparkSession, seed: int) -> None:
    subscribers = crowd(seed)
    made = plan_on_spark(
        framed(spark, subscribers), subscribers.rates, 4, groups_per_broker=EVERYBODY
    )
    greedy = loads(subscribers, greedy_shuffle(subscribers, 4), 4)

    holding = int((np.diff(subscribers.starts) > 0).sum())
    assert holding <= made.groups <= subscribers.n
    assert np.sort(made.loads.total) == pytest.approx(np.sort(greedy.total), rel=0.01)
    assert (made.loads.incoming.tolist(), made.loads.outgoing.tolist()) == totals(
        subscribers, home_of(made.assigned), 4
    )


def test_groups_are_dealt_out_nearly_as_evenly_as_people(spark: SparkSession) -> None:
    subscribers = crowd(5, n=4000)
    made = plan_on_spark(framed(spark, subscribers), subscribers.rates, 4)

    assert made.groups < 700
    assert made.loads.cov < 0.002
    assert lower_bound(subscribers, 4).distance(made.loads.maximum) < 0.05
    assert set(home_of(made.assigned).tolist()) == {0, 1, 2, 3}


def test_people_alike_stay_together(spark: SparkSession) -> None:
    """Four kinds of people, four brokers.  The greedy shuffle would mix them."""
    kinds = [i % 4 for i in range(400)]
    holdings = [list(range(5 * kind, 5 * kind + 5)) for kind in kinds]
    subscribers = Subscribers.of(holdings, [1.0] * 20)

    made = plan_on_spark(framed(spark, subscribers), subscribers.rates, 4, groups_per_broker=1)

    assert made.groups == 4
    assert made.loads.total.tolist() == [505.0] * 4


@pytest.mark.parametrize(
    ("holdings", "rates"),
    [
        pytest.param([[], []], [1.0], id="nobody holds anything"),
        pytest.param([[0], [0]], [0.0], id="nothing costs anything"),
    ],
)
def test_edges(spark: SparkSession, holdings: list[list[int]], rates: list[float]) -> None:
    subscribers = Subscribers.of(holdings, rates)

    made = plan_on_spark(framed(spark, subscribers), subscribers.rates, 2)

    assert made.loads.total.tolist() == [0.0, 0.0]
    assert len(home_of(made.assigned)) == 2


def test_there_must_be_brokers(spark: SparkSession) -> None:
    rates: Floats = np.ones(1)
    with pytest.raises(UsageError, match="brokers"):
        plan_on_spark(framed(spark, Subscribers.of([[0]], rates)), rates, 0)
