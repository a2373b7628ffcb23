"""The matching index gives the answers of the naive one, through any history of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import pytest
from tests.matching.naive import NaiveIndex

from godwit.content.filters import Filter
from godwit.content.predicates import ORDERINGS, Operator, Predicate
from godwit.content.values import Kind, Record, Value
from godwit.errors import UsageError
from godwit.matching import bitsets, boxes, boxtable, columns, groups, shapes, thresholds
from godwit.matching.index import Matches, MatchingIndex

Predicates = Callable[[Random], list[Predicate]]

# Few values, so that bounds, operands and record values coincide; some that only differ in kind,
# and some that no float64 can tell apart.
SMALL_NUMBERS: tuple[float, ...] = (-1, -0.5, 0, 0.5, 1, 1.0, 1.5, 2, 3, 3.0, 7)
LARGE_NUMBERS: tuple[float, ...] = (
    *(2**53 + offset for offset in (-2, -1, 0, 1, 2, 3, 4)),
    *(2.0**53, 2.0**53 + 2, -(2.0**53)),
    *(-(2**53) + offset for offset in (-3, -1, 0, 1)),
    *(2**63 - 1, 2**63 - 512, 2.0**63, -(2**63), 1e300, -1e300, 5),
)
STRINGS = ("", "a", "b", "ab", "ba", "aba", "abab", "a" * 20, "a" * 19 + "b", "b" + "a" * 19, "1")
KINDS: tuple[Kind | None, ...] = (None, *Kind)
STRING_OPERATORS = (Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS)


def a_number(random: Random) -> float:
    return random.choice(LARGE_NUMBERS if random.random() < 0.3 else SMALL_NUMBERS)


def a_value(random: Random) -> Value:
    draw = random.random()
    if draw < 0.45:
        return a_number(random)
    return random.choice(STRINGS) if draw < 0.8 else random.random() < 0.5


def any_predicate(random: Random, attribute: str) -> Predicate:
    operator = random.choice(tuple(Operator))
    if operator is Operator.PRESENT:
        return Predicate(attribute, operator, random.choice(KINDS))
    if operator is Operator.IN:
        values = tuple(a_value(random) for _ in range(random.choice((1, 2, 3, 20))))
        return Predicate(attribute, operator, values)
    if operator in ORDERINGS:
        return Predicate(attribute, operator, a_number(random))
    if operator in STRING_OPERATORS:
        return Predicate(attribute, operator, random.choice(STRINGS))
    return Predicate(attribute, operator, a_value(random))


def anything(random: Random) -> list[Predicate]:
    """All operators, all kinds, several predicates on one attribute."""
    return [any_predicate(random, random.choice("xyz")) for _ in range(random.randint(1, 4))]


def one_bound(random: Random) -> list[Predicate]:
    """Thresholds, in a few groups that booleans and numbers could confuse."""
    fixed = [] if random.random() < 0.3 else [a_fixed_value(random)]
    bound = Predicate("x", random.choice(tuple(ORDERINGS)), a_number(random))
    return fixed if fixed and random.random() < 0.2 else [*fixed, bound]


def a_fixed_value(random: Random) -> Predicate:
    if random.random() < 0.2:
        return Predicate("y", Operator.IN, random.choice(((0, False), (1, "1"), (True, "a", 2.0))))
    return Predicate("y", Operator.EQUAL, random.choice((0, 1, 1.0, True, False, "1", "a")))


def several_bounds(random: Random) -> list[Predicate]:
    """Intervals on several attributes, now and then with an exclusion or a string test."""
    attributes = random.sample(ATTRIBUTES, random.choice((1, 2, 2, 3, 3, 8)))
    predicates = [a_bound(random, name) for name in attributes for _ in range(random.randint(1, 2))]
    if random.random() < 0.2:
        predicates.append(any_predicate(random, random.choice(attributes)))
    return predicates


def a_bound(random: Random, attribute: str) -> Predicate:
    """Wide bounds mostly: the chance that eight of them hold at once must not vanish."""
    if random.random() < 0.3:
        return Predicate(attribute, random.choice(tuple(ORDERINGS)), a_number(random))
    if random.random() < 0.5:
        return Predicate(attribute, random.choice((Operator.ABOVE, Operator.AT_LEAST)), -0.5)
    return Predicate(attribute, random.choice((Operator.BELOW, Operator.AT_MOST)), 3)


def strings(random: Random) -> list[Predicate]:
    def one(attribute: str) -> Predicate:
        operator = random.choice((*STRING_OPERATORS, *STRING_OPERATORS, Operator.NOT_EQUAL))
        return Predicate(attribute, operator, random.choice(STRINGS))

    predicates = [one(random.choice("yz")) for _ in range(random.randint(1, 3))]
    if random.random() < 0.3:
        predicates.append(a_bound(random, "x"))
    return predicates


ATTRIBUTES = ("x", "y", "z", *(f"n{number}" for number in range(8)))
MIXES: tuple[Predicates, ...] = (anything, one_bound, several_bounds, strings)


def a_record(random: Random) -> Record:
    record: dict[str, Value] = {}
    for name in ATTRIBUTES:
        if random.random() < 0.9:
            numeric = name not in "yz" and random.random() < 0.9
            record[name] = a_number(random) if numeric else a_value(random)
    return record


@dataclass
class History:
    """The same random changes done to both indexes, and the comparisons made on the way."""

    seed: int
    predicates: Predicates
    size: int
    index: MatchingIndex[int] = field(default_factory=MatchingIndex)
    naive: NaiveIndex[int] = field(default_factory=NaiveIndex)
    comparisons: int = 0
    matches: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self._next_key = 0
        self._kept: list[tuple[Matches[int], list[int]]] = []

    def change(self) -> None:
        """Add more than is removed until there are `size`, and then in turns."""
        remove_share = 0.25 if len(self.naive) < self.size else 0.6
        if self.naive.filters and self.random.random() < remove_share:
            key = self.random.choice(list(self.naive.filters))
            self.index.remove(key)
            self.naive.remove(key)
        else:
            key, self._next_key = self._next_key, self._next_key + 1
            filter = Filter(self.predicates(self.random))
            self.index.add(key, filter)
            self.naive.add(key, filter)

    def clear(self) -> None:
        keys = list(self.naive.filters)
        self.random.shuffle(keys)
        for key in keys:
            self.index.remove(key)
            self.naive.remove(key)
            if self.random.random() < 0.01:
                self.compare()

    def compare(self) -> None:
        record = a_record(self.random)
        self.check(record, self.index.match(record))

    def check(self, record: Record, found: Matches[int]) -> None:
        expected = self.naive.match(record)
        self.comparisons += len(self.naive)
        self.matches += len(expected)
        missing = {key: str(self.naive.filters[key]) for key in set(expected) - set(found)}
        wrong = {key: str(self.naive.filters.get(key)) for key in set(found) - set(expected)}
        where = f"seed {self.seed}, {self.predicates.__name__}, record {record}"
        assert not missing, f"{where}: missing {missing}"
        assert not wrong, f"{where}: wrong {wrong}"
        assert len(found) == len(list(found)) == len(expected), f"{where}: a key is there twice"
        assert bool(found) == bool(expected), where
        assert len(self.index) == len(self.naive), where
        self._kept.append((found, expected))

    def check_kept(self) -> None:
        """Every result so far is still what it was (I1)."""
        for found, expected in self._kept:
            assert sorted(found) == sorted(expected), f"seed {self.seed}: a result has changed"

    def run(self, changes: int) -> None:
        for _ in range(changes):
            self.change()
            if self.random.random() < 0.20:
                self.compare()


@pytest.fixture(params=[0, 4], ids=["all on shelves", "few in one list"])
def small_limits(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Every limit within reach of a few filters: blocks split, tables fill, axes are left out."""
    for module in (groups, boxes, thresholds):
        monkeypatch.setattr(module, "FEW_MAX", request.param)
    monkeypatch.setattr(thresholds, "BLOCK_SIZE_MAX", 4)
    monkeypatch.setattr(boxes, "SCAN_MAX", 5)
    monkeypatch.setattr(boxtable, "PENDING_MAX", 7)
    monkeypatch.setattr(boxtable, "BULK_MIN", 3)
    monkeypatch.setattr(boxtable, "CAPACITY_MIN", 8)
    monkeypatch.setattr(boxtable, "INTERVALS_MAX", 3)
    monkeypatch.setattr(columns, "INTERVALS_MAX", 3)
    monkeypatch.setattr(bitsets, "AXES_MAX", 4)
    monkeypatch.setattr(bitsets, "BUCKETS_MAX", 3)
    monkeypatch.setattr(bitsets, "BOUNDS_PER_BUCKET", 2)
    monkeypatch.setattr(shapes, "AFFIX_LENGTH_MAX", 2)
    monkeypatch.setattr(shapes, "COMBINATIONS_MAX", 4)


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("predicates", MIXES)
@pytest.mark.parametrize("seed", range(10))
def test_agrees_with_the_naive_index_when_every_limit_is_small(
    predicates: Predicates, seed: int
) -> None:
    history = History(seed, predicates, size=60)
    history.run(400)
    history.clear()
    assert not history.index._schemas, f"seed {seed}: I3"
    history.run(50)
    history.check_kept()
    assert history.matches > 0, f"seed {seed}: nothing ever matched, so nothing was tested"


@pytest.mark.parametrize("predicates", MIXES)
def test_agrees_with_the_naive_index_when_there_are_many_filters(predicates: Predicates) -> None:
    history = History(1, predicates, size=10_000)
    for _ in range(2_200):
        history.change()
    for _ in range(8):
        history.run(20)
        history.compare()
    for key in list(history.naive.filters)[::2]:
        history.index.remove(key)
        history.naive.remove(key)
    for _ in range(8):
        history.run(20)
        history.compare()
    history.check_kept()
    assert history.matches > 0


def test_a_result_does_not_change_with_the_index() -> None:
    random = Random(2)
    index: MatchingIndex[int] = MatchingIndex()
    for key in range(1_000):
        index.add(key, Filter(random.choice(MIXES)(random)))
    records = [a_record(random) for _ in range(40)]
    kept = list(map(index.match, records))
    before = [sorted(matches) for matches in kept]
    for key in range(0, 1_000, 2):
        index.remove(key)
    for key in range(1_000, 3_000):
        index.add(key, Filter(random.choice(MIXES)(random)))
    assert [sorted(matches) for matches in kept] == before
    assert [len(matches) for matches in kept] == list(map(len, before))


def test_what_is_removed_leaves_nothing_behind() -> None:
    index: MatchingIndex[int] = MatchingIndex()
    for key in range(2_000):
        index.add(key, Filter.parse(f"x > {key} and n{key % 1_000} > 0"))
        index.add(key + 2_000, Filter.parse(f"y > {key}"))
    assert len(index.match({"x": 2_000, "n7": 1, "y": 5})) == 2 + 5
    for key in range(4_000):
        if key % 100:
            index.remove(key)
    (schema,) = index._schemas.values()
    (group,) = schema.groups.values()
    table, run = group.shelves
    assert isinstance(table, boxes.Boxes)
    assert isinstance(run, thresholds.Thresholds)
    assert table._table is not None
    assert len(table._table._columns.numbers) < 200, "attributes that no box uses are forgotten"
    assert len(run._blocks) == 1, "small neighbours are joined"
    assert sorted(index.match({"x": 2_000, "n0": 1, "y": 150})) == [0, 1_000, 2_000, 2_100]


def numbers_near_the_limit_of_float64() -> Iterator[Value]:
    for power in (2**53, 2**60, 2**63 - 2048):
        yield from (power + offset for offset in range(-3, 4))
        yield from (float(power), float(power + 1024), -power, -power - 1, -float(power))


@pytest.mark.parametrize("copies", [1, 5], ids=["one by one", "in a table"])
@pytest.mark.parametrize("operator", sorted(ORDERINGS, key=str))
def test_large_integers_are_compared_exactly_in_boxes(operator: Operator, copies: int) -> None:
    numbers = list(numbers_near_the_limit_of_float64())
    assert len(numbers) < boxes.SCAN_MAX < 5 * len(numbers)
    index: MatchingIndex[int] = MatchingIndex()
    naive: NaiveIndex[int] = NaiveIndex()
    for key, bound in enumerate(numbers * copies):
        box = Filter([Predicate("x", operator, bound), Predicate("y", Operator.ABOVE, 0)])
        index.add(key, box)
        naive.add(key, box)
    for value in numbers:
        record: Record = {"x": value, "y": 1}
        assert sorted(index.match(record)) == naive.match(record), value


def test_a_boolean_is_no_number() -> None:
    index: MatchingIndex[str] = MatchingIndex()
    for text in ("x = 1", "x = true", "x > 0", "x >= 0 and x <= 1", "x in (0, 1)", "x != 7"):
        index.add(text, Filter.parse(text))
    assert set(index.match({"x": True})) == {"x = true"}
    assert set(index.match({"x": 1.0})) == set(index.match({"x": 1})) - {"x = true"}
    assert set(index.match({"x": 1})) == {
        *("x = 1", "x > 0", "x >= 0 and x <= 1", "x in (0, 1)", "x != 7")
    }


def test_a_filter_that_nothing_matches_is_kept_but_never_found() -> None:
    index: MatchingIndex[str] = MatchingIndex()
    index.add("never", Filter.parse("x > 5 and x < 3"))
    assert len(index) == 1
    assert "never" in index
    assert not index.match({"x": 4})
    index.remove("never")
    assert len(index) == 0
    assert "never" not in index


def test_a_key_has_one_filter() -> None:
    index: MatchingIndex[str] = MatchingIndex()
    index.add("a", Filter.parse("x > 5"))
    with pytest.raises(UsageError, match="'a' already has a filter"):
        index.add("a", Filter.parse("x > 6"))
    with pytest.raises(UsageError, match="'b' has no filter"):
        index.remove("b")
    index.remove("a")
    with pytest.raises(UsageError, match="'a' has no filter"):
        index.remove("a")
    index.add("a", Filter.parse("x > 6"))
    assert not index.match({"x": 6})
    assert list(index.match({"x": 7})) == ["a"]


def test_boxes_that_come_and_go_leave_no_attributes_behind() -> None:
    """A thousand passing filters, each on attributes of its own, beside a hundred that stay."""
    index = MatchingIndex[int]()
    for key in range(100):
        index.add(key, Filter.parse(f"p > {key} and q < {key + 50}"))
    for number in range(1000):
        index.add(-1, Filter.parse(f"u{number} > 1 and v{number} < 9"))
        assert len(index.match({"p": 30, "q": 20})) == 30
        index.remove(-1)

    ((shelf,),) = [group.shelves for s in index._schemas.values() for group in s.groups.values()]
    assert isinstance(shelf, boxes.Boxes)
    assert shelf._table is not None
    assert len(shelf._table._columns.point({})) < 2 * 300
