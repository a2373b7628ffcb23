"""A plan as text: what is kept and released, a table of brokers, the tree with its loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.plan import AllocationPlan, PlannedBroker, is_above_capacity

#: Numbers are aligned to the right.
COLUMNS = {
    "broker": "<", "subscriptions": ">", "publishers": ">", "input/s": ">", "output kB/s": ">",
    "output": ">", "matching": ">", "messages/s": ">",
}  # fmt: skip
BAR_WIDTH = 20
#: Names that are listed, at most.
NAMES_SHOWN = 12


def plan_text(plan: AllocationPlan, gathered: Gathered) -> Iterator[str]:
    yield from _summary(plan, gathered)
    yield ""
    yield from _table(plan)
    yield ""
    yield from tree_lines(plan)
    yield ""
    for broker in plan.brokers:
        yield f"{broker.id}: {broker.reason}"


def _summary(plan: AllocationPlan, gathered: Gathered) -> Iterator[str]:
    kept = len(plan.brokers)
    yield f"algorithm        {plan.algorithm}, {plan.seconds:.2f} s"
    yield f"brokers kept     {kept} of {len(gathered.brokers)}; at least {plan.lower_bound_brokers}"
    if plan.above_bound:
        yield f"above the bound  {plan.above_bound}"
    yield f"brokers released {_names(plan.released)}"
    if gathered.missing:
        yield f"planned without  {_names(gathered.missing)}"
    messages_per_s = sum(broker.messages_per_s for broker in plan.brokers)
    input_per_s = sum(broker.input_per_s for broker in plan.brokers)
    yield (
        f"publications     {input_per_s:.1f}/s at all brokers together;"
        f" at least {plan.lower_bound_traffic_per_s:.1f}/s"
    )
    yield f"messages         {messages_per_s:.1f}/s in and out of all brokers"
    busiest = max(plan.brokers, key=lambda broker: broker.utilisation, default=None)
    if busiest is not None:
        yield f"busiest broker   {busiest.id}, {busiest.utilisation:.0%} of its output bandwidth"
    above = [broker.id for broker in plan.brokers if is_above_capacity(broker)]
    if above:
        yield f"above capacity   {_names(above)}"
    yield f"hops             {plan.mean_hops:.2f} for each delivery"
    yield (
        f"moves            {plan.moves} of {_clients(plan, gathered)} clients;"
        f" {_subscriptions(plan)} subscriptions in {plan.clusters} units"
    )
    yield f"closeness        evaluated {plan.closeness_evaluations:,} times"


def _names(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{len(names)}: {', '.join(names[:NAMES_SHOWN])}{more}"


def _subscriptions(plan: AllocationPlan) -> int:
    return sum(broker.subscriptions for broker in plan.brokers)


def _clients(plan: AllocationPlan, gathered: Gathered) -> int:
    if not gathered.subscriptions:  # They are on Spark, a row for each client.
        return _subscriptions(plan) + len(gathered.publishers)
    subscribers = {each.client or each.id for each in gathered.subscriptions}
    return len(subscribers | {each.client or each.id for each in gathered.publishers})


def _table(plan: AllocationPlan) -> Iterator[str]:
    at: dict[str, int] = {}
    for broker in plan.publishers.values():
        at[broker] = at.get(broker, 0) + 1
    rows = [list(COLUMNS), *(_cells(each, at.get(each.id, 0)) for each in plan.brokers)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, COLUMNS.values(), widths, strict=True)
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip()


def _cells(broker: PlannedBroker, publishers: int) -> list[str]:
    return [
        broker.id,
        str(broker.subscriptions),
        str(publishers),
        f"{broker.input_per_s:.1f}",
        f"{broker.output_bytes_s / 1_000:.1f}",
        f"{broker.utilisation:.0%}",
        f"{broker.matching_utilisation:.0%}",
        f"{broker.messages_per_s:.1f}",
    ]


def tree_lines(plan: AllocationPlan) -> Iterator[str]:
    """The tree, the root first, with a bar for the output utilisation of each broker."""
    brokers = {each.id: each for each in plan.brokers}
    if plan.root not in brokers:
        return
    drawn = [(f"{lead}{name}", brokers[name]) for lead, name in _tree(plan)]
    width = max(len(left) for left, _ in drawn)
    for left, broker in drawn:
        filled = round(BAR_WIDTH * min(1.0, max(0.0, broker.utilisation)))
        bar = "█" * filled + "░" * (BAR_WIDTH - filled)
        yield f"{left:<{width}}  {bar} {broker.utilisation:>4.0%}"


def _tree(plan: AllocationPlan) -> Iterator[tuple[str, str]]:
    """Each broker behind its lead, depth first, without recursion: a chain may be long."""
    children = children_of(plan)
    waiting = [("", "", plan.root)]
    while waiting:
        lead, below, name = waiting.pop()
        yield lead, name
        mine = children.get(name, [])
        for number in range(len(mine) - 1, -1, -1):
            is_last = number == len(mine) - 1
            branch, beneath = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            waiting.append((below + branch, below + beneath, mine[number]))


def children_of(plan: AllocationPlan) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for child, parent in sorted(plan.links):
        children.setdefault(parent, []).append(child)
    return children
