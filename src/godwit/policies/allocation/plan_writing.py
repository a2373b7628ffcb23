"""The plan as a document: expected loads, bounds, moves, and a reason for each broker.

Tested   tests/policies/allocation/test_plan_writing.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from godwit.policies.allocation.algorithms import AllocationOutcome
from godwit.policies.allocation.allocation_bounds import allocation_bounds
from godwit.policies.allocation.bound_distance import why_above
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.allocation.overlay_tree import subscribers_in
from godwit.policies.allocation.plan import AllocationPlan, PlannedBroker
from godwit.policies.allocation.publisher_placement import BrokerLimits
from godwit.policies.allocation.settings import AllocationSettings

#: Publishers that a reason names.
NAMED_MAX = 3


def written(
    problem: AllocationProblem,
    outcome: AllocationOutcome,
    settings: AllocationSettings,
    elapsed_s: Callable[[], float],
) -> AllocationPlan:
    traffic = outcome.traffic
    tree = traffic.tree
    bounds = allocation_bounds(problem)
    homes = dict(tree.assignment())
    assignment = {
        subscription: homes[index]
        for index, subscriber in enumerate(problem.subscribers)
        for subscription in subscriber.subscriptions
    }
    brokers = _brokers(problem, traffic)
    return AllocationPlan(
        algorithm=settings.algorithm,
        assignment=assignment,
        links=tuple((child, tree.parents[child]) for child in tree.order[1:]),
        root=tree.root,
        publishers=dict(traffic.homes_by_id),
        clients=_clients(problem, traffic, homes),
        brokers=brokers,
        released=tuple(sorted(b.id for b in problem.brokers if b.id not in tree.brokers)),
        lower_bound_brokers=bounds.brokers,
        lower_bound_traffic_per_s=bounds.traffic_per_s,
        above_bound=why_above(bounds, brokers, uses_all=settings.is_baseline),
        closeness_evaluations=outcome.closeness_evaluations,
        clusters=outcome.clusters,
        moves=moves(problem, traffic),
        mean_hops=traffic.mean_hops(),
        seconds=elapsed_s(),
    )


def _clients(
    problem: AllocationProblem, traffic: ExpectedTraffic, homes: dict[int, str]
) -> dict[str, str]:
    table = problem.table
    found = {
        table.clients[p] or table.ids[p]: broker
        for p, broker in enumerate(traffic.homes_by_id.values())
    }
    found |= {each.name: homes[index] for index, each in enumerate(problem.subscribers)}
    return found


def moves(problem: AllocationProblem, traffic: ExpectedTraffic) -> int:
    """Clients that are elsewhere now, of those whose place is known."""
    tree = traffic.tree
    found = {
        problem.subscribers[index].name
        for index, broker in tree.assignment()
        if problem.subscribers[index].broker not in (None, broker)
    }
    table = problem.table
    for p, broker in enumerate(traffic.homes_by_id.values()):
        if table.brokers[p] not in (None, broker):
            found.add(table.clients[p] or f"publisher {table.ids[p]}")
    return len(found)


def _brokers(problem: AllocationProblem, traffic: ExpectedTraffic) -> tuple[PlannedBroker, ...]:
    limits = BrokerLimits(traffic)
    found = []
    for place, name in enumerate(traffic.tree.order):
        capacity = float(limits.capacities[place])
        input_per_s = float(traffic.input_per_s[place])
        sent_per_s = float(traffic.output_per_s[place])
        sent_bytes_s = float(traffic.output_bytes_s[place])
        found.append(
            PlannedBroker(
                id=name,
                input_per_s=input_per_s,
                output_bytes_s=sent_bytes_s,
                utilisation=sent_bytes_s / (capacity or 1.0),
                messages_per_s=input_per_s + sent_per_s,
                matching_utilisation=input_per_s / float(limits.rates_max[place]),
                subscriptions=traffic.tree.subscriptions(name),
                reason=_reason(problem, traffic, place),
            )
        )
    return tuple(found)


def _reason(problem: AllocationProblem, traffic: ExpectedTraffic, place: int) -> str:
    """Why these units are here."""
    tree = traffic.tree
    name = tree.order[place]
    sentences = []
    units = tree.served[name]
    if units:
        sentences.append(_about_units(problem, traffic, place))
    children = tree.children[name]
    if children:
        what = "forwards to" if units else "serves no subscription; it connects"
        sentences.append(f"{what} {_listed(children)}")
    publishers = [p for p, home in enumerate(traffic.homes) if home == place]
    if publishers:
        names = _listed([traffic.table.ids[p] for p in publishers])
        verb = "publisher {} causes" if len(publishers) == 1 else "publishers {} cause"
        sentences.append(f"{verb.format(names)} the least traffic here")
    if not sentences:
        return "The only broker that is kept; there are no subscriptions."
    text = "; ".join(sentences)
    return f"{text[0].upper()}{text[1:]}."


def _about_units(problem: AllocationProblem, traffic: ExpectedTraffic, place: int) -> str:
    """How many units, and what they share."""
    units = traffic.tree.served[traffic.tree.order[place]]
    weights: Counter[str] = Counter()
    for leaf in subscribers_in(units):
        for p, count in leaf.profile.counts.items():
            weights[problem.table.ids[p]] += count
    total = sum(leaf.rate_per_s for leaf in subscribers_in(units))
    received = problem.table.plain
    arriving = sum(
        received.rates_per_s[p] * received.share(p, int(traffic.local_counts[place, p]))
        for p in range(len(received.ids))
    )
    n = sum(unit.subscriptions for unit in units)
    size = f"{len(units)} unit{'s' if len(units) > 1 else ''} of {n} subscriptions"
    if not weights:
        return f"{size} that receive nothing"
    heaviest = [publisher for publisher, _ in weights.most_common()]
    shared = f"{total:.4g} deliveries/s from {arriving:.4g} publications/s"
    return f"{size} of {_listed(heaviest)} share traffic: {shared}"


def _listed(found: tuple[str, ...] | list[str]) -> str:
    shown = ", ".join(found[:NAMED_MAX])
    return shown if len(found) <= NAMED_MAX else f"{shown} and {len(found) - NAMED_MAX} more"
