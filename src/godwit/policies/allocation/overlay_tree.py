"""A tree of brokers with the units that each serves: the result of overlay construction.

Paper    Cheung, thesis 6.3.
Tested   tests/policies/allocation/test_overlay_construction.py.

T1  A broker other than the root is below exactly one broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.units import AllocationUnit


@dataclass(frozen=True)
class OverlayTree:
    root: str
    parents: Mapping[str, str]
    """Of every broker but the root."""

    brokers: Mapping[str, BrokerCapacity]
    served: Mapping[str, tuple[AllocationUnit, ...]]
    """Units of subscribers at each broker, without those that stand for brokers below."""

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {broker: [] for broker in self.brokers}
        for child, parent in self.parents.items():
            found[parent].append(child)
        return {broker: tuple(sorted(below)) for broker, below in found.items()}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Parents before children."""
        found = [self.root]
        for broker in found:  # Grows while it is walked: breadth first.
            found.extend(self.children[broker])
        assert len(found) == len(self.brokers), "not a tree"
        return tuple(found)

    def assignment(self) -> Iterator[tuple[int, str]]:
        """Every subscriber and its broker."""
        for broker, units in self.served.items():
            for leaf in subscribers_in(units):
                yield leaf.subscriber, broker

    def subscriptions(self, broker: str) -> int:
        return sum(unit.subscriptions for unit in self.served[broker])


def subscribers_in(units: Iterable[AllocationUnit]) -> Iterator[AllocationUnit]:
    for unit in units:
        for leaf in unit.leaves():
            if leaf.subscriber >= 0:
                yield leaf


def star(brokers: Iterable[tuple[BrokerCapacity, tuple[AllocationUnit, ...]]]) -> OverlayTree:
    """The first broker with all others below it."""
    pairs = list(brokers)
    return balanced(pairs, fanout=len(pairs))


def balanced(
    brokers: Iterable[tuple[BrokerCapacity, tuple[AllocationUnit, ...]]], fanout: int
) -> OverlayTree:
    """The first broker with the next `fanout` below it, each of which has as many, and so on."""
    pairs = list(brokers)
    names = [broker.id for broker, _ in pairs]
    return OverlayTree(
        names[0],
        {name: names[place // fanout] for place, name in enumerate(names[1:])},
        {broker.id: broker for broker, _ in pairs},
        {broker.id: units for broker, units in pairs},
    )


def renamed(
    tree: OverlayTree, names: Mapping[str, str], brokers: Mapping[str, BrokerCapacity]
) -> OverlayTree:
    """The same tree with other brokers: `names` has the new one for each."""
    return replace(
        tree,
        root=names[tree.root],
        parents={names[child]: names[parent] for child, parent in tree.parents.items()},
        brokers={names[name]: brokers[names[name]] for name in tree.brokers},
        served={names[name]: units for name, units in tree.served.items()},
    )
