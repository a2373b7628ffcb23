"""FBF, fastest broker first: first fit of the units in random order.

Paper    Cheung, thesis 6.2.1.  O(S) for S units and few brokers.
Tested   tests/policies/allocation/test_first_fit.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.first_fit import Packed, first_fit
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.units import AllocationUnit


def fastest_broker_first(
    units: Sequence[AllocationUnit],
    brokers: Sequence[BrokerCapacity],
    table: PublisherTable,
    random: Random,
) -> Packed:
    order = list(units)
    random.shuffle(order)
    return first_fit(order, brokers, table)
