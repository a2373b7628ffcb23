"""Plans on Spark for tests."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from msgspec.structs import replace
from pyspark.sql import SparkSession
from tests.policies.allocation.scenes import bits_of, brokers, gathered, publisher, subscription

from godwit.lab.large_plans.large_plan import PlanLimits, planned_on_spark
from godwit.lab.large_plans.profile_frames import frame_of_problem
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.gathered_reading import read
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.settings import AllocationSettings

SETTINGS = AllocationSettings(compensate=False)
#: Small enough that groups are cut into pieces and rounds do most of the work.
LIMITS = PlanLimits(piece_max=40, enough=60)
#: Brokers send less than this.
BANDWIDTH_BYTES_S = 60_000.0


@dataclass(frozen=True, slots=True)
class Made:
    plan: AllocationPlan
    """With its assignment, without duration."""

    gifs: int
    clusters: int


def market(random: Random, *, subscriptions: int = 800, publishers: int = 8) -> Gathered:
    """As RS4: 40% want a whole stock, the others part of it; a few want two stocks."""
    names = [f"p{p}" for p in range(publishers)]
    found = []
    for number in range(subscriptions):
        wanted = random.sample(names, 2 if random.random() < 0.1 else 1)
        bits = {}
        for name in wanted:
            edge = random.randrange(1, 64)
            part = range(edge) if random.random() < 0.5 else range(edge, 64)
            noise = {place for place in range(64) if random.random() < 0.03}
            bits[name] = "1" * 64 if random.random() < 0.4 else bits_of(set(part) ^ noise)
        home = f"B{random.randrange(1, 31):02}"
        found.append(subscription(f"s{number:04}", bits, broker=home))
    return gathered(
        found,
        brokers(30, BANDWIDTH_BYTES_S, base_s=1e-5, each_s=1e-6),
        [publisher(name, random.choice((16, 32, 64))) for name in names],
    )


def planned(
    session: SparkSession, document: Gathered, limits: PlanLimits, *, partitions: int = 3
) -> Made:
    problem = read(document, compensate=False)
    frame = frame_of_problem(session, problem).repartition(partitions)
    with planned_on_spark(frame, problem.table, problem.brokers, SETTINGS, limits=limits) as made:
        rows = made.assigned.toArrow().sort_by("subscriber").to_pylist()
        assert len({row["subscriber"] for row in rows}) == len(rows)
        homes = {row["subscriber"]: row["broker"] for row in rows}
        return Made(replace(made.plan, assignment=homes), made.gifs, made.clusters)
