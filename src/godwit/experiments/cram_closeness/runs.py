"""How `cram-closeness` is run: a plan is deployed, or its clusters are looked at.

A case has a `study`: `deployed` is a run as in allocation/; `clusters` makes a plan and counts the
clusters that fall into parts without a publication in common.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

from godwit.experiments.allocation.expected_state import expected_of
from godwit.experiments.allocation.plan_notes import write_numbers
from godwit.experiments.allocation.runs import run as allocation_run
from godwit.experiments.allocation.runs import settings_of
from godwit.experiments.allocation.setups import setup_of
from godwit.lab.declaration import Case
from godwit.policies.allocation.algorithms import allocate
from godwit.policies.allocation.gathered_reading import read
from godwit.policies.allocation.packed_profiles import PackedProfile, union
from godwit.policies.allocation.units import AllocationUnit

DEPLOYED, CLUSTERS = "deployed", "clusters"


def run(case: Case, seed: int, folder: Path) -> None:
    if case["study"] == DEPLOYED:
        allocation_run(case, seed, folder)
        return
    problem = read(expected_of(setup_of(case), seed), compensate=False)
    tree = allocate(problem, settings_of(case, seed), process_time).traffic.tree
    clusters = [unit for units in tree.served.values() for unit in units if unit.parts]
    disjoint = sum(is_disjoint(cluster) for cluster in clusters)
    write_numbers(
        {"clusters_of_many": len(clusters), "clusters_disjoint": disjoint},
        folder,
    )


def is_disjoint(cluster: AllocationUnit) -> bool:
    """Whether it has parts without a publication in common, not even by way of other members.

    Two subscriptions of a stock may have nothing in common and both overlap with a third.
    """
    unlike = {leaf.profile.key: leaf.profile for leaf in cluster.leaves() if leaf.profile.count}
    parts: list[PackedProfile] = []
    for profile in unlike.values():
        apart = [part for part in parts if not part.intersection_count(profile)]
        overlapping = [part for part in parts if part.intersection_count(profile)]
        parts = [*apart, union([profile, *overlapping])]
    return len(parts) > 1
