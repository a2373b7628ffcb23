"""BIN PACKING: first fit of the units by bandwidth, descending.

Paper    Cheung, thesis 6.2.2.  O(S log S) for S units and few brokers.
Departs  1. Of units with equal bandwidth the lower number is first (open in the thesis).
Tested   tests/policies/allocation/test_first_fit.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.first_fit import Packed, first_fit
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.units import AllocationUnit


def heaviest_first(units: Iterable[AllocationUnit]) -> list[AllocationUnit]:
    return sorted(units, key=lambda unit: (-unit.bandwidth_bytes_s, unit.number))


def bin_packing(
    units: Iterable[AllocationUnit],
    brokers: Sequence[BrokerCapacity],
    table: PublisherTable,
    whole_per_s: float = float("inf"),
) -> Packed:
    return first_fit(heaviest_first(units), brokers, table, whole_per_s)
