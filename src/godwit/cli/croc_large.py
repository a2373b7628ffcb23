"""`godwit croc plan` on Spark: for networks with very many clients."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from godwit.cli.croc_sources import capacities_in
from godwit.cli.extras import needs
from godwit.errors import UsageError
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.gathered_reading import AllocationProblem, read
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.settings import AllocationSettings
from godwit.policies.large_allocation.finishing import runs_on_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: From so many clients in a trace on, CRAM runs on Spark unless the user says otherwise.
SPARK_FROM = 20_000


def plan_trace_on_spark(
    folder: Path,
    capacities: Path | None,
    master: str,
    settings: AllocationSettings,
    assignment: Path | None,
    clients_min: int = 0,
) -> tuple[AllocationPlan, Gathered] | None:
    """The plan, and the network without clients.  None: there are fewer than `clients_min`."""
    with needs("lab", "a trace"):
        from godwit.lab.large_plans.profile_frames import frame_of_vectors  # noqa: PLC0415  Spark.
        from godwit.lab.metrics.reading import read_trace  # noqa: PLC0415
        from godwit.lab.trace_profiles import (  # noqa: PLC0415
            homes_of_trace,
            network_of_trace,
            vectors_of_trace,
        )
        from godwit.spark.session import spark_session  # noqa: PLC0415
    if not folder.is_dir():
        raise UsageError(f"cannot read {folder}: no such folder")
    known = capacities_in(capacities)
    if clients_min and not runs_on_spark(settings):
        return None
    trace = read_trace(spark_session(master, application="godwit croc"), folder)
    homes = homes_of_trace(trace)
    if clients_min and homes.count() < clients_min:
        return None
    network = network_of_trace(trace, known)
    problem = read(network, compensate=settings.compensate)
    frame = frame_of_vectors(homes, vectors_of_trace(trace), network, problem.table)
    return _planned(frame, problem, settings, assignment), network


def plan_profiles_on_spark(
    gathered: Gathered, master: str, settings: AllocationSettings, assignment: Path | None
) -> AllocationPlan:
    with needs("lab", "a plan on Spark"):
        from godwit.lab.large_plans.profile_frames import frame_of_problem  # noqa: PLC0415  Spark.
        from godwit.spark.session import spark_session  # noqa: PLC0415
    problem = read(gathered, compensate=settings.compensate)
    frame = frame_of_problem(spark_session(master, application="godwit croc"), problem)
    made = _planned(frame, problem, settings, assignment)
    subscriptions = {each.name: each.subscriptions for each in problem.subscribers}
    by_subscription = {
        subscription: broker
        for client, broker in made.assignment.items()
        for subscription in subscriptions[client]
    }
    return replace(made, assignment=by_subscription)


def _planned(
    frame: DataFrame,
    problem: AllocationProblem,
    settings: AllocationSettings,
    assignment: Path | None,
) -> AllocationPlan:
    from godwit.lab.large_plans.large_plan import planned_on_spark  # noqa: PLC0415  Spark.

    if assignment is not None and assignment.exists():
        raise UsageError(f"--assignment {assignment}: it exists; name a folder that does not")
    with planned_on_spark(
        frame, problem.table, problem.brokers, settings, clock=time.monotonic
    ) as made:
        if assignment is not None:
            made.assigned.write.parquet(str(assignment))
            return made.plan
        collected = _collected(made.assigned)
        clients = {**made.plan.clients, **collected}
        return replace(made.plan, assignment=collected, clients=clients)


def _collected(assigned: DataFrame) -> dict[str, str]:
    """Client -> broker, in the order of clients."""
    rows = assigned.select("subscriber", "broker").toArrow().sort_by("subscriber")
    names = rows.column("subscriber").to_pylist()
    return dict(zip(names, rows.column("broker").to_pylist(), strict=True))
