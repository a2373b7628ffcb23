"""First fit: each unit goes to the first broker that has room, the most capable first.

Paper    Cheung, thesis 6.2.1: "assigned to the next most resourceful broker that has the capacity".
Words    descending resource capacity -> BrokerCapacity.order.
Claim    The allocation is that of a search through all brokers for each unit.
Departs  1. "Next most resourceful" is first fit in the order of total bandwidth: a rule by what
            remains would spread the load over all brokers.
Tested   tests/policies/allocation/test_first_fit.py: against a plain loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from godwit.policies.allocation.capacity import BrokerCapacity, BrokerFill
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.units import AllocationUnit


@dataclass(frozen=True, slots=True)
class Packed:
    """The result of first fit."""

    fills: tuple[BrokerFill, ...]
    """All brokers in their order, also empty ones."""

    without_room: AllocationUnit | None
    """The first unit that no broker had room for; then the allocation has failed."""

    last: Packed | None = None
    """CRAM's last scheme, if this one is an earlier one."""

    @property
    def used(self) -> list[BrokerFill]:
        return [fill for fill in self.fills if fill.units]

    @property
    def is_complete(self) -> bool:
        return self.without_room is None


def first_fit(
    units: Sequence[AllocationUnit],
    brokers: Sequence[BrokerCapacity],
    table: PublisherTable,
    whole_per_s: float = float("inf"),
) -> Packed:
    """`brokers` are in their order.  `whole_per_s`: no set of these units receives at more."""
    fills = tuple(BrokerFill(broker, table, whole_per_s=whole_per_s) for broker in brokers)
    capacities = np.array([broker.below_bytes_s for broker in brokers])
    loads = np.zeros(len(brokers))
    for unit in units:
        # Only brokers with bandwidth: full ones are skipped by one comparison.
        for place in np.flatnonzero(loads + unit.bandwidth_bytes_s < capacities).tolist():
            if fills[place].has_rate(unit):
                fills[place].add(unit)
                loads[place] = fills[place].bandwidth_bytes_s
                break
        else:
            return Packed(fills, unit)
    return Packed(fills, None)
