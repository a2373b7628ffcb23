"""Planning that knows where clients are: what moving costs against what a plan saves.

Beyond the thesis.  With `stay` from 0 to 1 the plan with the least

    (1 - stay) * cost / cost of the best plan  +  stay * moved

is chosen, of equals the one with fewer moves.

    cost    half for the brokers that a plan keeps, half for the input of all brokers
    moved   half for the clients that move, half for the bytes per second that they receive: what is
            in flight while a client moves grows with it

The candidates are the best plan; the same with its brokers exchanged for others of enough
capacity, so that more clients are there already; and, for several numbers of brokers, the present
placement on the brokers with the most clients, where only clients of the others move, and as few as
possible from brokers above their capacity.  Each with publishers placed by GRAPE, and where they
are now.

Departs  1. Clients whose broker is not known count as ones that do not move.
Tested   tests/policies/allocation/test_staying.py.

ST1  0 is the best plan.  1 moves nothing if no broker is above its capacity now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from godwit.policies.allocation.capacity import BrokerCapacity, BrokerFill, UnallocatableError
from godwit.policies.allocation.direct_links import score
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.allocation.layer_joining import joined
from godwit.policies.allocation.overlay_construction import Allocator, construct
from godwit.policies.allocation.overlay_layers import Layers
from godwit.policies.allocation.overlay_tree import OverlayTree, renamed, subscribers_in
from godwit.policies.allocation.publisher_placement import BrokerLimits
from godwit.policies.allocation.units import AllocationUnit, UnitFactory

#: Numbers of brokers that are tried.
SIZES_MAX = 5


@dataclass(frozen=True, slots=True)
class MovedClients:
    """What a plan moves."""

    clients: int
    bandwidth_bytes_s: float


class Staying:
    def __init__(
        self,
        problem: AllocationProblem,
        units: list[AllocationUnit],
        factory: UnitFactory,
        allocate: Allocator,
        finish: Callable[[OverlayTree, bool], ExpectedTraffic],
    ) -> None:
        self._problem = problem
        self._units = units
        self._factory = factory
        self._allocate = allocate
        self._finish = finish
        table = problem.table
        self._bandwidths = [table.plain.bandwidth_bytes_s(s.profile) for s in problem.subscribers]
        self._total = MovedClients(
            len(problem.subscribers) + len(table.ids),
            sum(self._bandwidths) + sum(table.bandwidths_bytes_s),
        )

    def chosen(self, best: ExpectedTraffic, stay: float) -> ExpectedTraffic:
        brokers, input_per_s = score(best)

        def weight(traffic: ExpectedTraffic) -> tuple[float, float]:
            found = score(traffic)
            cost = (found[0] / brokers + (found[1] / input_per_s if input_per_s else 1.0)) / 2
            share = self._share(self.moved(traffic))
            return (1 - stay) * cost + stay * share, share

        candidates = [best, *self._candidates(best)]
        return min(candidates, key=weight)

    # -- what moves ----------------------------------------------------------------------------

    def moved(self, traffic: ExpectedTraffic) -> MovedClients:
        clients, bandwidth = 0, 0.0
        for index, broker in traffic.tree.assignment():
            if self._problem.subscribers[index].broker not in (None, broker):
                clients += 1
                bandwidth += self._bandwidths[index]
        table = self._problem.table
        for p, broker in enumerate(traffic.homes_by_id.values()):
            if table.brokers[p] not in (None, broker):
                clients += 1
                bandwidth += table.bandwidths_bytes_s[p]
        return MovedClients(clients, bandwidth)

    def _share(self, moved: MovedClients) -> float:
        total = self._total
        by_bandwidth = moved.bandwidth_bytes_s / (total.bandwidth_bytes_s or 1.0)
        return (moved.clients / (total.clients or 1) + by_bandwidth) / 2

    # -- candidates ----------------------------------------------------------------------------

    def _candidates(self, best: ExpectedTraffic) -> Iterator[ExpectedTraffic]:
        for tree in self._trees(best):
            for places_publishers in (True, False):
                found = self._finish(tree, places_publishers)
                if _is_within_capacity(found):
                    yield found

    def _trees(self, best: ExpectedTraffic) -> Iterator[OverlayTree]:
        yield best.tree
        yield self._exchanged(best)
        present = self._present()
        most = sorted(present, key=lambda name: (-len(present[name]), name))
        known = {broker.id for broker in self._problem.brokers}
        most = [name for name in most if name in known]
        fewest = min(len(most), len([n for n in best.tree.order if best.tree.served[n]]))
        step = max(1, (len(most) - fewest) // SIZES_MAX)
        for size in sorted({*range(fewest, len(most) + 1, step), len(most)} - {0}):
            yield from self._drained(most[:size], present)

    def _present(self) -> dict[str, list[AllocationUnit]]:
        found: dict[str, list[AllocationUnit]] = {}
        for unit in self._units:
            broker = self._problem.subscribers[unit.subscriber].broker
            if broker is not None:
                found.setdefault(broker, []).append(unit)
        return found

    def _drained(
        self, kept: list[str], present: dict[str, list[AllocationUnit]]
    ) -> Iterator[OverlayTree]:
        """The present placement on these brokers; clients of others go where they add least."""
        by_id = {broker.id: broker for broker in self._problem.brokers}
        fills = []
        stayed: set[int] = set()
        for name in kept:
            fill = BrokerFill(by_id[name], self._problem.table)
            # The light ones first: as many as possible stay.
            for unit in sorted(present[name], key=lambda u: (u.bandwidth_bytes_s, u.number)):
                if fill.fits(unit):
                    fill.add(unit)
                    stayed.add(unit.number)
            fills.append(fill)
        moving = [unit for unit in self._units if unit.number not in stayed]
        for unit in sorted(moving, key=lambda u: (-u.bandwidth_bytes_s, u.number)):
            open_ = [fill for fill in fills if fill.fits(unit)]
            if not open_:
                return
            min(open_, key=lambda fill: (fill.added_per_s(unit), fill.broker.order)).add(unit)
        yield from self._connected(fills)

    def _connected(self, fills: list[BrokerFill]) -> Iterator[OverlayTree]:
        table = self._problem.table
        tree = self._present_tree(fills)
        if tree is not None:
            yield tree
            return
        tree = joined(Layers(fills, (), table))
        if tree is not None:
            yield tree
            return
        used = {fill.broker.id for fill in fills}
        free = [broker for broker in self._problem.brokers if broker.id not in used]
        try:
            # Without the optimisations: these move subscribers to other brokers.
            yield construct(fills, free, self._allocate, table, self._factory, optimisations=False)
        except UnallocatableError:
            return

    def _present_tree(self, fills: list[BrokerFill]) -> OverlayTree | None:
        """The links that there are now, if they make a tree of these brokers."""
        served = {fill.broker.id: tuple(fill.units) for fill in fills}
        links = self._problem.neighbours
        root = fills[0].broker.id
        parents: dict[str, str] = {}
        order = [root]
        for name in order:  # Grows while it is walked: breadth first.
            for other in links.get(name, ()):
                if other in served and other != root and other not in parents:
                    parents[other] = name
                    order.append(other)
        if len(order) != len(served):
            return None
        return OverlayTree(root, parents, {f.broker.id: f.broker for f in fills}, served)

    # -- brokers exchanged ---------------------------------------------------------------------

    def _exchanged(self, best: ExpectedTraffic) -> OverlayTree:
        """The same tree on brokers where more of the clients are already."""
        tree = best.tree
        at: dict[str, dict[str, int]] = {}
        for name in tree.order:
            here = at.setdefault(name, {})
            for leaf in subscribers_in(tree.served[name]):
                broker = self._problem.subscribers[leaf.subscriber].broker
                if broker is not None:
                    here[broker] = here.get(broker, 0) + 1
        wishes = sorted(
            ((-count, name, other) for name, found in at.items() for other, count in found.items())
        )
        by_id = {broker.id: broker for broker in self._problem.brokers}
        chosen: dict[str, str] = {}
        for _, name, other in wishes:
            is_free = name not in chosen and other in by_id and other not in chosen.values()
            if is_free and _is_enough(best, name, by_id[other]):
                chosen[name] = other
        for name in tree.order:
            if name not in chosen:
                unused = [b for b in self._problem.brokers if b.id not in chosen.values()]
                same = [b for b in unused if b.id == name]
                enough = [b for b in (*same, *unused) if _is_enough(best, name, b)]
                if not enough:
                    return tree
                chosen[name] = enough[0].id
        return renamed(tree, chosen, by_id)


def _is_enough(traffic: ExpectedTraffic, name: str, broker: BrokerCapacity) -> bool:
    """Whether another broker can do what this one does, wherever the publishers are."""
    tree, table = traffic.tree, traffic.table
    place = traffic.places[name]
    sent = max(float(traffic.output_bytes_s[place]), _tested_bytes_s(traffic, place))
    n = tree.subscriptions(name) + len(tree.children[name])
    whole = sum(
        table.rates_per_s[p] * table.share(p, int(count))
        for p, count in enumerate(traffic.below[place].tolist())
    )
    received = max(float(traffic.input_per_s[place]), whole)
    return broker.can_send(sent) and broker.can_match(received, n)


def _tested_bytes_s(traffic: ExpectedTraffic, place: int) -> float:
    """What it sends if all publishers are at the root."""
    tree, table = traffic.tree, traffic.table
    name = tree.order[place]
    sent = sum(unit.bandwidth_bytes_s for unit in tree.served[name])
    for child in tree.children[name]:
        counts: Iterable[int] = traffic.below[traffic.places[child]].tolist()
        sent += sum(
            table.bandwidths_bytes_s[p] * table.share(p, count) for p, count in enumerate(counts)
        )
    return sent


def _is_within_capacity(traffic: ExpectedTraffic) -> bool:
    limits = BrokerLimits(traffic)
    return bool(
        (traffic.output_bytes_s < limits.capacities).all()
        and (traffic.input_per_s <= limits.rates_max * (1 + 1e-9)).all()
    )
