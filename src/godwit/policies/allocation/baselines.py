"""The baselines of the thesis: trees over all brokers, whatever these can carry.

Paper    Cheung, thesis 7.3.2.
Departs  1. If CRAM-XOR finds no room, PAIRWISE-K has no number of clusters to copy: it takes that
            of the brokers.
Tested   tests/policies/allocation/test_baselines.py.
"""

from __future__ import annotations

from random import Random

from godwit.policies.allocation.automatic import automatic, on_a_random_tree
from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.cram import Cram
from godwit.policies.allocation.effort import Effort
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.allocation.manual import manual
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.pairwise import Pairwise
from godwit.policies.allocation.settings import AllocationAlgorithm, AllocationSettings
from godwit.policies.allocation.units import AllocationUnit, UnitFactory


def baseline(
    problem: AllocationProblem,
    settings: AllocationSettings,
    units: list[AllocationUnit],
    factory: UnitFactory,
    effort: Effort,
    random: Random,
) -> OverlayTree:
    brokers, fanout = problem.brokers, settings.automatic_fanout
    effort.clusters = len(units)
    if settings.algorithm_kind is AllocationAlgorithm.MANUAL:
        return manual(units, brokers, random)
    if settings.algorithm_kind is AllocationAlgorithm.AUTOMATIC:
        return automatic(units, brokers, random, fanout)
    wanted = len(brokers)
    if settings.algorithm_kind is AllocationAlgorithm.PAIRWISE_K:
        wanted = _clusters_of_cram_xor(problem, settings, units, factory, effort) or wanted
    pairwise = Pairwise(units, problem.table, factory)
    clusters = pairwise.clusters(wanted)
    effort.closeness_evaluations += pairwise.search.evaluations
    effort.clusters = len(clusters)
    homes = [random.randrange(len(brokers)) for _ in clusters]
    if settings.algorithm_kind is AllocationAlgorithm.PAIRWISE_N:
        homes = random.sample(range(len(brokers)), len(clusters))
    return on_a_random_tree(clusters, homes, brokers, random, fanout)


def _clusters_of_cram_xor(
    problem: AllocationProblem,
    settings: AllocationSettings,
    units: list[AllocationUnit],
    factory: UnitFactory,
    effort: Effort,
) -> int:
    cram = Cram(
        units, problem.brokers, problem.table, factory, ClosenessMetric.XOR,
        keeps_fewest=settings.keep == "fewest",
    )  # fmt: skip
    packed = cram.run()
    effort.closeness_evaluations += cram.search.evaluations
    return sum(len(fill.units) for fill in packed.used) if packed.is_complete else 0
