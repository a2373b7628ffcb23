"""Numbers of a plan in a trace: a decision with the action *planned*."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import msgspec

from godwit.broker.effects import Decision
from godwit.overlay.topology import topology
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.plan import AllocationPlan, PlannedBroker
from godwit.simulation.observers import Observer
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter

#: The policy that the decisions are listed under.
POLICY = "allocation"


def report(plan: AllocationPlan, gathered: Gathered, trace: Observer) -> None:
    """Put a plan into the trace of its network: its numbers, and what it says of each broker."""
    made = Decision("planned", plan.algorithm, "", plan.root, numbers_of(plan, gathered))
    trace.on_decision(plan.root, POLICY, made, 0.0)
    for broker in plan.brokers:
        reason: dict[str, float | str] = {
            "input_per_s": broker.input_per_s,
            "messages_per_s": broker.messages_per_s,
            "output_bytes_s": broker.output_bytes_s,
            "is_fine": is_fine(broker),
        }
        trace.on_decision(broker.id, POLICY, Decision("predicted", broker.id, "", "", reason), 0.0)


def is_fine(broker: PlannedBroker) -> bool:
    return max(broker.utilisation, broker.matching_utilisation) <= 1.0


def numbers_of(plan: AllocationPlan, gathered: Gathered) -> dict[str, float]:
    incoming = [broker.input_per_s for broker in plan.brokers]
    tree = topology([broker.id for broker in plan.brokers], plan.links)
    return {
        "brokers": len(plan.brokers),
        "available": len(gathered.brokers),
        "lower_bound_brokers": plan.lower_bound_brokers,
        "clusters": plan.clusters,
        "closeness_evaluations": plan.closeness_evaluations,
        "moves": plan.moves,
        "planned_in_per_s_mean": fmean(incoming),
        "planned_in_per_s_max": max(incoming),
        "planned_overloaded": sum(not is_fine(broker) for broker in plan.brokers),
        "longest_path": tree.diameter,
        "plan_s": plan.seconds,
    }


def write_numbers(found: Mapping[str, float], folder: Path) -> None:
    """A trace with nothing but these numbers: of a plan that is not deployed."""
    with TraceWriter(folder) as writer:
        Recorder(writer).decision(
            "",
            time_s=0.0,
            policy=POLICY,
            action="planned",
            subject="",
            source="",
            target="",
            reason=msgspec.json.encode(found).decode(),
        )
