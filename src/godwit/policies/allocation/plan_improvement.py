"""A better plan by local search, in a given time or number of steps.

Beyond the thesis.  A plan is better if it has fewer brokers, or as many and less input in all.

    1  the brokers that serve subscriptions connect each other, without brokers that only forward
    2  a broker is emptied: its units go where they add the least input, in parts if need be; the
       least loaded first
    3  a unit, a part of one, or all with its profile move to the broker where that saves the most
       input

After each broker that could be emptied, and at the end, trees are built as the algorithm of the
plan does it, as in 1, and as in direct_links.py.  The best plan of all is kept: the result is never
worse than the start.

Tested   tests/policies/allocation/test_plan_improvement.py.

I1  Every broker is within its capacity after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from random import Random

from godwit.policies.allocation.capacity import BrokerFill, UnallocatableError
from godwit.policies.allocation.direct_links import direct_trees, score, serving
from godwit.policies.allocation.expected_traffic import ExpectedTraffic
from godwit.policies.allocation.gathered_reading import AllocationProblem
from godwit.policies.allocation.layer_joining import joined
from godwit.policies.allocation.overlay_construction import Allocator, construct
from godwit.policies.allocation.overlay_layers import Layers
from godwit.policies.allocation.overlay_tree import OverlayTree
from godwit.policies.allocation.publisher_placement import BrokerLimits
from godwit.policies.allocation.units import AllocationUnit, UnitFactory

#: What a move must save, so that rounding does not count as progress.
LEAST_PER_S = 1e-9
#: Units that may be tried in a row without success before the search ends.
PATIENCE = 200


class PlanImprovement:
    def __init__(
        self,
        problem: AllocationProblem,
        factory: UnitFactory,
        allocate: Allocator,
        finish: Callable[[OverlayTree], ExpectedTraffic],
        may_go_on: Callable[[], bool],
        random: Random,
    ) -> None:
        self._problem = problem
        self._factory = factory
        self._allocate = allocate
        self._finish = finish
        self._may_go_on = may_go_on
        self._random = random
        self._notes: list[str] = []

    def improved(self, start: ExpectedTraffic) -> tuple[ExpectedTraffic, tuple[str, ...]]:
        best = start
        fills = serving(start.tree, self._problem.table)
        if self._may_go_on():
            best = self._best(best, fills, "brokers that only forwarded are released")
        while self._may_go_on() and (fewer := self._emptied(fills)) is not None:
            fills = fewer
            best = self._best(best, fills, "the load of a broker was spread over others")
        if self._save_input(fills):
            best = self._best(best, fills, "units moved to where more of their traffic is")
        return best, tuple(self._notes)

    # -- trees ---------------------------------------------------------------------------------

    def _best(
        self, best: ExpectedTraffic, fills: Sequence[BrokerFill], note: str
    ) -> ExpectedTraffic:
        """The best so far and of the trees over these brokers."""
        for tree in self._trees(fills):
            found = self._finish(tree)
            if score(found) < score(best) and BrokerLimits(found).hold:
                before, after = score(best), score(found)
                self._notes.append(
                    f"{note}: {before[0]} brokers and {before[1]:.4g} publications/s, "
                    f"then {after[0]} and {after[1]:.4g}"
                )
                best = found
        return best

    def _trees(self, fills: Sequence[BrokerFill]) -> Iterable[OverlayTree]:
        table = self._problem.table
        tree = joined(Layers(fills, (), table))
        if tree is not None:
            yield tree
        used = {fill.broker.id for fill in fills}
        free = [broker for broker in self._problem.brokers if broker.id not in used]
        with suppress(UnallocatableError):
            yield construct(fills, free, self._allocate, table, self._factory)
        yield from direct_trees(fills)

    # -- fewer brokers -------------------------------------------------------------------------

    def _emptied(self, fills: Sequence[BrokerFill]) -> list[BrokerFill] | None:
        """The same load on one broker less, if that is found."""
        for fill in sorted(fills, key=lambda fill: (fill.bandwidth_bytes_s, fill.broker.id)):
            if not self._may_go_on():
                return None
            others = [self._copy(other) for other in fills if other is not fill]
            if self._spread(fill.units, others):
                return others
        return None

    def _copy(self, fill: BrokerFill) -> BrokerFill:
        return BrokerFill(fill.broker, self._problem.table, fill.units)

    def _spread(self, units: Sequence[AllocationUnit], fills: Sequence[BrokerFill]) -> bool:
        """Put units where they add the least input; a unit that fits nowhere is taken apart."""
        waiting = sorted(units, key=lambda unit: unit.bandwidth_bytes_s)
        while waiting:
            unit = waiting.pop()
            open_ = [fill for fill in fills if fill.fits(unit)]
            if open_:
                min(open_, key=lambda fill: (fill.added_per_s(unit), fill.broker.order)).add(unit)
            elif unit.parts:
                waiting.extend(unit.parts)
                waiting.sort(key=lambda unit: unit.bandwidth_bytes_s)
            else:
                return False
        return True

    # -- less input ----------------------------------------------------------------------------

    def _save_input(self, fills: list[BrokerFill]) -> bool:
        """Move units as long as that saves input; moves that change nothing are allowed."""
        changed, in_vain = False, 0
        while len(fills) > 1 and in_vain < PATIENCE and self._may_go_on():
            saved = self._moved_some(fills, self._random.randrange(len(fills)))
            if saved > LEAST_PER_S:
                changed, in_vain = True, 0
            else:
                in_vain += 1
        return changed

    def _moved_some(self, fills: list[BrokerFill], place: int) -> float:
        """What moving units from this broker to the best one saves; 0 if nothing was moved."""
        source = fills[place]
        moving, rest = self._picked(source)
        if not rest:
            return 0.0
        left = BrokerFill(source.broker, self._problem.table, rest)
        joint = moving[0] if len(moving) == 1 else self._factory.merged(moving)
        targets = [fill for fill in fills if fill is not source and fill.fits(joint)]
        if not targets:
            return 0.0
        target = min(targets, key=lambda fill: (fill.added_per_s(joint), fill.broker.order))
        saved = source.rate_per_s - left.rate_per_s - target.added_per_s(joint)
        if saved < -LEAST_PER_S:
            return 0.0
        for unit in moving:
            target.add(unit)
        fills[place] = left
        return saved

    def _picked(self, source: BrokerFill) -> tuple[list[AllocationUnit], list[AllocationUnit]]:
        """A random unit, a part of it, or all with its profile; and what remains."""
        unit = self._random.choice(source.units)
        rest = [other for other in source.units if other is not unit]
        kind = self._random.random()
        if unit.parts and kind < 0.4:
            part = self._random.choice(unit.parts)
            return [part], [*rest, *(other for other in unit.parts if other is not part)]
        if kind < 0.7:
            key = unit.profile.key
            same = [other for other in rest if other.profile.key == key]
            return [unit, *same], [other for other in rest if other.profile.key != key]
        return [unit], rest


def within(settings_s: float, steps: int, clock: Callable[[], float]) -> Callable[[], bool]:
    """Whether the search may go on: by the clock, or else by the number of calls."""
    deadline_s = clock() + settings_s
    left = [steps]

    def may_go_on() -> bool:
        if settings_s > 0:
            return clock() < deadline_s
        left[0] -= 1
        return left[0] >= 0

    return may_go_on
