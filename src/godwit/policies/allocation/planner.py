"""A plan from what was gathered: the algorithms, one after the other.

Paper    Cheung, thesis 6.2 and 6.3: phases 2 and 3 of CROC.

    1  subscriptions -> brokers   the algorithm of the settings
    2  brokers -> tree            the same algorithm, layer by layer
    3  publishers -> brokers      GRAPE, by the traffic that is expected

Pure: the same input and settings give the same plan, unless time is given to search for a better
one.
Tested   tests/policies/allocation/test_planner.py.

    make_plan(gathered, AllocationSettings(algorithm="cram-iou"))
"""

from __future__ import annotations

from collections.abc import Callable

from godwit.errors import UsageError
from godwit.policies.allocation.algorithms import allocate
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.gathered_reading import read
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.plan_writing import written
from godwit.policies.allocation.settings import AllocationSettings

DEFAULTS = AllocationSettings()


def _no_clock() -> float:
    return 0.0


def make_plan(
    gathered: Gathered,
    settings: AllocationSettings = DEFAULTS,
    *,
    clock: Callable[[], float] = _no_clock,
) -> AllocationPlan:
    """The plan.  `clock` gives seconds; without it `seconds` is 0, and no time can be given.

    Raises UsageError if the document breaks a rule, and UnallocatableError, a UsageError that says
    what is missing, if the brokers cannot carry the load.
    """
    if settings.improve_s > 0 and clock is _no_clock:
        raise UsageError("improve_s needs a clock; without one, use improve_steps")
    started_s = clock()
    problem = read(gathered, compensate=settings.compensate)
    if not problem.brokers:
        raise UsageError("brokers: there are none; a plan needs at least one")
    outcome = allocate(problem, settings, clock)
    return written(problem, outcome, settings, lambda: clock() - started_s)
