"""A finished plan with brokers above their capacity is mended, if free brokers can do that.

The capacity test knows what subscribers receive.  It does not know what is only found out when the
tree is finished: publications that no subscription wants arrive at the broker of their publisher
all the same, and a publisher whose client also subscribes is where that client is, so its traffic
may flow upwards.

    1  a broker that is too small is exchanged for the smallest free one that is enough
    2  if that does not help, a free broker becomes the root, for the publishers
    3  if that does not help either, a plan is made again, as if these brokers could do less

Departs  1. The thesis does not test the finished tree.
Tested   tests/policies/allocation/test_overload_relief.py.

OR1  1 and 2 keep who is served together, and the links between these brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from godwit.policies.allocation.capacity import BrokerCapacity, UnallocatableError
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.allocation.overlay_tree import OverlayTree, renamed
from godwit.policies.allocation.publisher_placement import BrokerLimits
from godwit.profile.matching_delay import MatchingDelay

#: Roots that are tried, the smallest first.
ROOTS_MAX = 3
#: How often a plan is made again.
ROUNDS_MAX = 3
#: What a broker is taken to be above its capacity, beyond what it is.
MARGIN = 1.001


def relieved(
    problem: AllocationProblem,
    traffic: ExpectedTraffic,
    finish: Callable[[OverlayTree], ExpectedTraffic],
    build: Callable[[AllocationProblem], OverlayTree],
) -> ExpectedTraffic:
    """The plan, mended where possible.

    `build` makes a tree of a problem, `finish` places the publishers in a tree.
    """
    if BrokerLimits(traffic).hold:
        return traffic
    exchanged = _exchanged(problem, traffic)
    if BrokerLimits(exchanged).hold:
        return exchanged
    rate_per_s = sum(problem.table.rates_per_s)
    able = [b for b in _free(problem, traffic.tree) if b.can_match(rate_per_s, 1)]
    for broker in able[: -ROOTS_MAX - 1 : -1]:
        found = finish(_below(broker, traffic.tree))
        if BrokerLimits(found).hold:
            return found
    return _planned_again(problem, traffic, finish, build) or exchanged


def _planned_again(
    problem: AllocationProblem,
    traffic: ExpectedTraffic,
    finish: Callable[[OverlayTree], ExpectedTraffic],
    build: Callable[[AllocationProblem], OverlayTree],
) -> ExpectedTraffic | None:
    brokers = {broker.id: broker for broker in problem.brokers}
    real = dict(brokers)
    for _ in range(ROUNDS_MAX):
        for place, name in enumerate(traffic.tree.order):
            brokers[name] = _lowered(brokers[name], traffic, place)
        ordered = sorted(brokers.values(), key=lambda broker: broker.order)
        try:
            tree = build(replace(problem, brokers=tuple(ordered)))
        except UnallocatableError:
            return None
        traffic = finish(renamed(tree, {name: name for name in tree.order}, real))
        if BrokerLimits(traffic).hold:
            return traffic
    return None


def _lowered(broker: BrokerCapacity, traffic: ExpectedTraffic, place: int) -> BrokerCapacity:
    """By what it is above its capacity, and so far that a unit has to go elsewhere."""
    limits = BrokerLimits(traffic)
    above_bytes_s = float(traffic.output_bytes_s[place] - limits.capacities[place]) * MARGIN
    share = float(traffic.input_per_s[place] / limits.rates_max[place]) * MARGIN
    bandwidth, delay = broker.output_bandwidth_bytes_s, broker.matching
    if above_bytes_s >= 0:
        own = sum(unit.bandwidth_bytes_s for unit in traffic.tree.served[broker.id])
        bandwidth = max(0.0, min(bandwidth - above_bytes_s - 1, own or bandwidth))
    if share > MARGIN:
        delay = MatchingDelay(delay.slope_s * share, delay.intercept_s * share)
    return BrokerCapacity(broker.id, bandwidth, delay)


def _free(problem: AllocationProblem, tree: OverlayTree) -> list[BrokerCapacity]:
    """The smallest is last."""
    return [broker for broker in problem.brokers if broker.id not in tree.brokers]


def _exchanged(problem: AllocationProblem, traffic: ExpectedTraffic) -> ExpectedTraffic:
    """Each broker that is too small is replaced, if a free one is enough."""
    tree, limits = traffic.tree, BrokerLimits(traffic)
    free = _free(problem, tree)
    names = {name: name for name in tree.order}
    for place, name in enumerate(tree.order):
        own = sum(unit.bandwidth_bytes_s for unit in tree.served[name])  # May be compensated.
        sent = max(float(traffic.output_bytes_s[place]), own)
        received, n = float(traffic.input_per_s[place]), limits.subscriptions[place]
        if _is_enough(tree.brokers[name], sent, received, n):
            continue
        enough = [broker for broker in free if _is_enough(broker, sent, received, n)]
        if enough:
            names[name] = enough[-1].id
            free.remove(enough[-1])
    return _renamed(problem, traffic, names)


def _renamed(
    problem: AllocationProblem, traffic: ExpectedTraffic, names: Mapping[str, str]
) -> ExpectedTraffic:
    by_id = {broker.id: broker for broker in problem.brokers}
    tree = renamed(traffic.tree, names, by_id)
    found = ExpectedTraffic(tree, problem.subscribers, problem.table)
    for p, home in enumerate(traffic.homes):
        found.move(p, found.places[names[traffic.tree.order[home]]])
    found.recount()
    return found


def _below(broker: BrokerCapacity, tree: OverlayTree) -> OverlayTree:
    """The tree with a root above it."""
    return replace(
        tree,
        root=broker.id,
        parents={**tree.parents, tree.root: broker.id},
        brokers={broker.id: broker, **tree.brokers},
        served={broker.id: (), **tree.served},
    )


def _is_enough(broker: BrokerCapacity, sent: float, received: float, n: int) -> bool:
    return (sent == 0 or broker.can_send(sent)) and broker.can_match(received, n)
