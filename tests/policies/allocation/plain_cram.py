"""CRAM as the thesis has it, on sets of publications: all pairs, BIN PACKING after each merge.

`basic` is the algorithm of 6.2.3 before its optimisations; `with_gifs` has optimisations 1 and 3,
and compares all pairs of GIFs before each merge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from tests.policies.allocation.scenes import Ids, ids_of

from godwit.policies.allocation.capacity import BrokerCapacity
from godwit.policies.allocation.packed_profiles import PublisherTable
from godwit.policies.allocation.units import AllocationUnit


@dataclass(eq=False)
class PlainUnit:
    number: int
    ids: Ids
    bandwidth: float
    subscriptions: int
    members: frozenset[int]


def closeness(metric: str, a: Ids, b: Ids) -> float:
    both, union, apart = len(a & b), len(a | b), len(a ^ b)
    if metric == "intersect":
        return both
    if metric == "xor":
        return 1 / apart if apart else 2
    whole = len(a) + len(b) if metric == "ios" else union
    return both**2 / whole if whole else 0


@dataclass
class Plain:
    brokers: Sequence[BrokerCapacity]
    table: PublisherTable
    metric: str
    one_to_many: bool = True
    units: list[PlainUnit] = field(default_factory=list)
    number: int = 0
    had_ties: bool = False
    had_failures: bool = False

    def start(self, units: Sequence[AllocationUnit]) -> None:
        self.units = [
            PlainUnit(u.number, ids_of(u), u.bandwidth_bytes_s, u.subscriptions,
                      frozenset([u.subscriber]))
            for u in units
        ]  # fmt: skip
        self.number = len(units)

    def merged(self, parts: Sequence[PlainUnit]) -> PlainUnit:
        self.number += 1
        return PlainUnit(
            self.number,
            frozenset().union(*(part.ids for part in parts)),
            sum(part.bandwidth for part in parts),
            sum(part.subscriptions for part in parts),
            frozenset().union(*(part.members for part in parts)),
        )

    def rate(self, ids: Ids) -> float:
        return sum(self.table.rates_per_s[p] / self.table.lengths[p] for p, _ in ids)

    def pack(self, units: Sequence[PlainUnit]) -> Mapping[str, list[PlainUnit]] | None:
        """BIN PACKING, by definition."""
        found: dict[str, list[PlainUnit]] = {broker.id: [] for broker in self.brokers}
        for unit in sorted(units, key=lambda unit: (-unit.bandwidth, unit.number)):
            for broker in self.brokers:
                there = [*found[broker.id], unit]
                n = sum(each.subscriptions for each in there)
                ids = frozenset().union(*(each.ids for each in there))
                if sum(
                    each.bandwidth for each in there
                ) < broker.output_bandwidth_bytes_s and self.rate(ids) <= broker.rate_max(n) * (
                    1 + 1e-9
                ):
                    found[broker.id].append(unit)
                    break
            else:
                return None
        return found

    def try_merge(self, parts: Sequence[PlainUnit]) -> PlainUnit | None:
        merged = self.merged(parts)
        rest = [unit for unit in self.units if unit not in parts]
        if self.pack([*rest, merged]) is None:
            self.had_failures = True
            return None
        return merged

    def replace(self, parts: Sequence[PlainUnit], merged: PlainUnit) -> None:
        self.units = [unit for unit in self.units if unit not in parts] + [merged]

    # -- before the optimisations --------------------------------------------------------------

    def basic(self, units: Sequence[AllocationUnit]) -> Mapping[str, list[PlainUnit]] | None:
        self.start(units)
        best = self.pack(self.units)
        refused: set[frozenset[int]] = set()
        while best is not None:
            pairs = [
                (closeness(self.metric, a.ids, b.ids), a, b)
                for a, b in combinations(self.units, 2)
                if frozenset((a.number, b.number)) not in refused
            ]
            highest = max((c for c, _, _ in pairs), default=0)
            if highest == 0:
                break
            closest = [(a, b) for c, a, b in pairs if c == highest]
            self.had_ties = self.had_ties or len(closest) > 1
            a, b = closest[0]
            merged = self.try_merge([a, b])
            if merged is None:
                refused.add(frozenset((a.number, b.number)))
            else:
                self.replace([a, b], merged)
                best = self.pack(self.units)
        return best

    # -- with GIFs -----------------------------------------------------------------------------

    def with_gifs(self, units: Sequence[AllocationUnit]) -> Mapping[str, list[PlainUnit]] | None:
        self.start(units)
        if self.pack(self.units) is None:
            return None
        self.gifs: dict[Ids, int] = {}
        self.next_gif = 0
        for unit in self.units:
            self.gif_of(unit)
        self.refused: set[frozenset[int]] = set()
        self.maximal: set[int] = set()
        while (pair := self.closest_pair()) is not None:
            a, b = pair
            if a == b:
                self.merge_equal(a)
            elif a > b:
                self.merge_covered(a, b)
            elif a < b:
                self.merge_covered(b, a)
            elif not (self.one_to_many and self.metric != "xor" and self.merge_one_to_many(a, b)):
                self.merge([self.lightest(a), self.lightest(b)], self.pair_of(a, b))
        return self.pack(self.units)

    def gif_of(self, unit: PlainUnit) -> int:
        if unit.ids not in self.gifs:
            self.gifs[unit.ids] = self.next_gif
            self.next_gif += 1
        return self.gifs[unit.ids]

    def units_of(self, ids: Ids) -> list[PlainUnit]:
        found = [unit for unit in self.units if unit.ids == ids]
        return sorted(found, key=lambda unit: (unit.bandwidth, unit.number))

    def lightest(self, ids: Ids) -> PlainUnit:
        return self.units_of(ids)[0]

    def pair_of(self, a: Ids, b: Ids) -> frozenset[int]:
        return frozenset((self.gifs[a], self.gifs[b]))

    def closest_pair(self) -> tuple[Ids, Ids] | None:
        alive = sorted({unit.ids for unit in self.units}, key=self.gifs.__getitem__)
        found = []
        for place, a in enumerate(alive):
            if self.gifs[a] not in self.maximal and len(self.units_of(a)) > 1:
                found.append((a, a))
            found += [(a, b) for b in alive[place + 1 :] if self.pair_of(a, b) not in self.refused]
        scored = [
            (-closeness(self.metric, a, b), -len(a & b), self.gifs[a], self.gifs[b], a, b)
            for a, b in found
        ]
        scored = [entry for entry in scored if entry[0] < 0]
        if not scored:
            return None
        return min(scored, key=lambda entry: entry[:4])[4:]

    def merge(self, parts: Sequence[PlainUnit], pair: frozenset[int]) -> None:
        merged = self.try_merge(parts)
        if merged is None:
            self.refused.add(pair)
        else:
            self.put(parts, merged)

    def put(self, parts: Sequence[PlainUnit], merged: PlainUnit) -> None:
        before = {unit.ids for unit in self.units}
        gif = self.gif_of(merged)
        self.replace(parts, merged)
        self.maximal.discard(gif)
        for gone in before - {unit.ids for unit in self.units}:
            del self.gifs[gone]

    def most(
        self, units: Sequence[PlainUnit], parts: Callable[[int], Sequence[PlainUnit]], fewest: int
    ) -> tuple[Sequence[PlainUnit], PlainUnit] | None:
        for k in range(len(units), fewest - 1, -1):
            merged = self.try_merge(parts(k))
            if merged is not None:
                return parts(k), merged
        return None

    def merge_equal(self, ids: Ids) -> None:
        gif, rest = self.gifs[ids], self.units_of(ids)
        while len(rest) > 1:
            found = self.most(rest, lambda k, rest=rest: rest[:k], 2)  # type: ignore[misc]
            if found is None:
                break
            self.put(*found)
            rest = rest[len(found[0]) :]
        self.maximal.add(gif)

    def merge_covered(self, covering: Ids, covered: Ids) -> None:
        first, others = self.lightest(covering), self.units_of(covered)
        found = self.most(others, lambda k: [first, *others[:k]], 1)
        if found is None:
            self.refused.add(self.pair_of(covering, covered))
        else:
            self.put(*found)

    def covered_set(self, ids: Ids, limit: float) -> list[Ids]:
        chosen: list[Ids] = []
        load, covered = self.lightest(ids).bandwidth, frozenset[tuple[int, int]]()
        candidates = [
            other for other in {unit.ids for unit in self.units}
            if other < ids and other and self.pair_of(ids, other) not in self.refused
        ]  # fmt: skip
        while True:
            best = min(
                candidates, key=lambda x: (-len(x - covered), self.gifs[x]), default=frozenset()
            )
            if not best - covered or load + self.lightest(best).bandwidth > limit:
                return chosen
            load += self.lightest(best).bandwidth
            covered |= best
            chosen.append(best)

    def merge_one_to_many(self, a: Ids, b: Ids) -> bool:
        limit = self.lightest(a).bandwidth + self.lightest(b).bandwidth
        valid = []
        for ids in sorted((a, b), key=self.gifs.__getitem__):
            chosen = self.covered_set(ids, limit)
            near = closeness(self.metric, ids, frozenset().union(*chosen))
            if chosen and near > closeness(self.metric, a, b):
                parts = [self.lightest(each) for each in (ids, *chosen)]
                merged = self.try_merge(parts)
                if merged is not None:
                    valid.append((-near, self.gifs[ids], parts, merged))
        if valid:
            _, _, parts, merged = min(valid, key=lambda entry: entry[:2])
            self.put(parts, merged)
        return bool(valid)
