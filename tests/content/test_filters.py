"""What filters say about records and about each other, against the reference of reference.py."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from random import Random

import pytest
from tests.content import reference
from tests.content.reference import DOMAINS, Domain, Extent

from godwit.content.filters import Filter, Relation
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import PREDICATES_PER_FILTER_MAX, Value
from godwit.errors import ContentError

SEEDS = range(24)
#: The first twelve see every domain with every choice of attributes.
FEW_SEEDS = SEEDS[:12]
FILTERS_PER_SEED = 100
RECORDS_PER_SEED = 60
#: One attribute makes filters meet often; three make them differ in what they name.
ATTRIBUTES = ("xyz", "x", "y", "xy")

MIRROR = {
    Relation.EQUAL: Relation.EQUAL,
    Relation.SUPERSET: Relation.SUBSET,
    Relation.SUBSET: Relation.SUPERSET,
    Relation.INTERSECT: Relation.INTERSECT,
    Relation.EMPTY: Relation.EMPTY,
}


@dataclass(frozen=True)
class Sample:
    """Some filters over one domain, each with the extent that the reference gives it."""

    seed: int
    random: Random
    domain: Domain
    attributes: str
    filters: list[tuple[Filter, Extent]]


def samples(seeds: range = SEEDS, *, size: int = FILTERS_PER_SEED) -> Iterator[Sample]:
    for seed in seeds:
        random = Random(seed)
        domain = DOMAINS[seed % len(DOMAINS)]
        attributes = ATTRIBUTES[seed % len(ATTRIBUTES)]
        drawn = [domain.draw(random, attributes) for _ in range(size)]
        filters = [(Filter(predicates), domain.extent(predicates)) for predicates in drawn]
        yield Sample(seed, random, domain, attributes, filters)


def test_filters_relate_as_the_witnesses_say() -> None:
    cases = 0
    seen: Counter[Relation] = Counter()
    for sample in samples():
        for (a, a_extent), (b, b_extent) in product(sample.filters, repeat=2):
            answers = (a.relation(b), a.covers(b), a.intersects(b), a.announces(b), a == b)
            expected = (
                Relation(reference.relation(a_extent, b_extent)),
                reference.covers(a_extent, b_extent),
                reference.intersects(a_extent, b_extent),
                reference.announces(a_extent, b_extent),
                reference.covers(a_extent, b_extent) and reference.covers(b_extent, a_extent),
            )
            assert answers == expected, f"seed {sample.seed}: {a!r} and {b!r}"
            cases += len(answers)
            seen[answers[0]] += 1
    assert cases == len(SEEDS) * FILTERS_PER_SEED**2 * 5
    assert cases > 1_000_000
    assert min(seen[relation] for relation in Relation) > 4_000, seen


def test_filters_match_what_every_operator_accepts() -> None:
    cases = matched = 0
    for sample in samples():
        draw = sample.domain.draw_record
        records = [draw(sample.random, sample.attributes) for _ in range(RECORDS_PER_SEED)]
        for (a, _), record in product(sample.filters, records):
            expected = reference.matches(a.predicates, record)
            named = {predicate.attribute for predicate in a.predicates}
            said = f"seed {sample.seed}: {a!r} on {record}"
            assert a.matches(record) == expected, said
            assert a.permits(record) == (expected and record.keys() == named), said
            cases += 1
            matched += expected
    assert cases == len(SEEDS) * FILTERS_PER_SEED * RECORDS_PER_SEED
    assert 0.1 < matched / cases < 0.9


def test_nobody_announces_nothing() -> None:
    advertisement = Filter.parse("x > 3")
    assert not advertisement.permits({})
    assert advertisement.permits({"x": 4})
    assert not advertisement.permits({})


def test_filters_accept_each_witness_of_one_attribute_as_the_reference_does() -> None:
    cases = 0
    for seed, domain in enumerate(DOMAINS):
        random = Random(seed)
        for attribute, _ in product("xyz", range(60)):
            a = Filter(domain.draw(random, attribute))
            for value in domain.values:
                expected = reference.matches(a.predicates, {attribute: value})
                assert a.matches({attribute: value}) == expected, f"seed {seed}: {a!r}, {value!r}"
                cases += 1
    assert cases > 300_000


def test_whole_records_of_two_attributes_tell_the_same_as_one_attribute_at_a_time() -> None:
    """Here nothing is assumed of attributes: a filter is the set of all records it matches."""
    domain = Domain(numbers=(0, 1), strings=("", "a"))
    choices: tuple[Value | None, ...] = (None, *domain.values)
    pairs = product(choices, repeat=2)
    records = [{n: v for n, v in zip("xy", p, strict=True) if v is not None} for p in pairs]
    carrying = {names: _bits(r.keys() == set(names) for r in records) for names in ("x", "y", "xy")}
    cases = 0
    for seed in range(4):
        random = Random(seed)
        drawn = [Filter(domain.draw(random, "xy")) for _ in range(40)]
        members = [_bits(reference.matches(f.predicates, r) for r in records) for f in drawn]
        for (a, a_set), (b, b_set) in product(zip(drawn, members, strict=True), repeat=2):
            permitted = a_set & carrying["".join(sorted(a.constraints))]
            answers = (a.covers(b), a.intersects(b), a.announces(b), a == b)
            expected = (
                not b_set & ~a_set,
                bool(a_set & b_set),
                bool(permitted & b_set),
                a_set == b_set,
            )
            assert answers == expected, f"seed {seed}: {a!r} and {b!r}"
            cases += len(answers)
    assert cases == 4 * 40**2 * 4


def _bits(answers: Iterator[bool]) -> int:
    return sum(1 << place for place, yes in enumerate(answers) if yes)


def test_a_relation_seen_from_the_other_side_is_its_mirror_image() -> None:
    for sample in samples(FEW_SEEDS):
        for (a, _), (b, _) in product(sample.filters, repeat=2):
            assert b.relation(a) is MIRROR[a.relation(b)], f"seed {sample.seed}: {a!r} and {b!r}"


def test_filters_are_equal_exactly_when_no_record_tells_them_apart() -> None:
    for sample in samples(FEW_SEEDS):
        by_filter: dict[Filter, Extent] = {}
        for a, extent in sample.filters:
            assert a.is_satisfiable == reference.is_satisfiable(extent), f"{sample.seed}: {a!r}"
            known = by_filter.setdefault(a, extent)
            assert reference.covers(known, extent), f"seed {sample.seed}: {a!r} found as a key"
            assert reference.covers(extent, known), f"seed {sample.seed}: {a!r} found as a key"
        for a, b in product(by_filter, repeat=2):
            equal = a.is_satisfiable and a is b
            assert (a.relation(b) is Relation.EQUAL) == equal, f"{sample.seed}: {a!r} and {b!r}"


def test_covering_is_transitive_and_keeps_every_match_and_every_announcement() -> None:
    chains = kept_matches = kept_announcements = 0
    for sample in samples(FEW_SEEDS, size=60):
        filters = [a for a, _ in sample.filters]
        inside = {a: [b for b in filters if a.covers(b)] for a in filters}
        records = [sample.domain.draw_record(sample.random) for _ in range(20)]
        for wide in filters:
            for narrow in inside[wide]:
                said = f"seed {sample.seed}: {wide!r} covers {narrow!r}"
                assert all(wide.covers(inner) for inner in inside[narrow]), said
                assert all(wide.matches(r) for r in records if narrow.matches(r)), said
                announcing = [adv for adv in filters if adv.announces(narrow)]
                assert all(adv.announces(wide) for adv in announcing), said
                chains += len(inside[narrow])
                kept_matches += sum(narrow.matches(r) for r in records)
                kept_announcements += len(announcing)
    assert min(chains, kept_matches, kept_announcements) > 5_000


@pytest.mark.parametrize(
    ("one", "relation", "other"),
    [
        pytest.param("a > 5", "superset", "a > 9", id="a lower bound covers a higher one"),
        pytest.param("a > 5", "subset", "a >= 5", id="a closed bound covers the open one"),
        pytest.param("a > 5", "empty", "a <= 5", id="an open bound does not meet its end"),
        pytest.param("a >= 5", "intersect", "a <= 5", id="two closed bounds meet in one number"),
        pytest.param("a >= 5 and a <= 5", "equal", "a = 5.0", id="bounds that meet are a number"),
        pytest.param("a >= 5 and a != 5", "equal", "a > 5", id="an end taken out opens the bound"),
        pytest.param("a > 5 and a > 3", "equal", "a > 5", id="the weaker bound says nothing"),
        pytest.param("a in (1,2,3) and a != 2", "equal", "a in (3,1)", id="a list loses a value"),
        pytest.param("a != 1", "intersect", "a != 2", id="two exclusions share all but two"),
        pytest.param("a != 1 and a > 1", "equal", "a > 1", id="no need to exclude what is outside"),
        pytest.param("a is a number", "superset", "a != 0", id="a number is any number"),
        pytest.param("a is present", "superset", "a is a string", id="present is of any kind"),
        pytest.param("a = 1", "empty", "a = true", id="a boolean is no number"),
        pytest.param("a = 1", "empty", "a = '1'", id="a string is no number"),
        pytest.param("a != 1", "empty", "a = 'x'", id="another kind is not just unequal"),
        pytest.param("a in (1,true,'x')", "superset", "a = true", id="a list may mix kinds"),
        pytest.param("a != true", "equal", "a = false", id="two booleans are all"),
        pytest.param(f"a = {2**53}", "empty", f"a = {2**53 + 1}", id="integers are not rounded"),
        pytest.param(f"a > {2.0**53}", "superset", f"a = {2**53 + 1}", id="floats are exact"),
        pytest.param("a starts with 'ab'", "superset", "a = 'abc'", id="a prefix covers a word"),
        pytest.param("a starts with 'ab'", "subset", "a starts with 'a'", id="prefix of a prefix"),
        pytest.param("a ends with 'ab'", "subset", "a ends with 'b'", id="suffix of a suffix"),
        pytest.param("a starts with 'a'", "empty", "a starts with 'b'", id="prefixes disagree"),
        pytest.param("a starts with 'a'", "intersect", "a ends with 'b'", id="ends are free"),
        pytest.param("a contains 'b'", "superset", "a starts with 'abc'", id="part of a prefix"),
        pytest.param("a contains 'ab'", "superset", "a ends with 'cab'", id="part of a suffix"),
        pytest.param("a contains 'a'", "superset", "a contains 'bab'", id="part of a part"),
        pytest.param(
            "a starts with 'x' and a ends with 'y'",
            "intersect",
            "a contains 'xy'",
            id="a part across prefix and suffix is not implied",
        ),
        pytest.param(
            "a contains ''", "equal", "a is a string", id="every string has nothing in it"
        ),
        pytest.param(
            "a starts with 'a' and a != 'ab'", "intersect", "a in ('ab','ac')", id="a word left out"
        ),
        pytest.param("a > 1", "intersect", "b > 1", id="different attributes always meet"),
        pytest.param("a > 1", "superset", "a > 1 and b > 1", id="more conditions, fewer records"),
        pytest.param("a > 2 and a < 1", "empty", "a > 2 and a < 1", id="nothing meets itself"),
    ],
)
def test_relation(one: str, relation: str, other: str) -> None:
    a, b = Filter.parse(one), Filter.parse(other)
    assert a.relation(b) is Relation(relation)
    assert b.relation(a) is MIRROR[Relation(relation)]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a > 2 and a < 2", id="between equal open bounds"),
        pytest.param("a >= 2 and a < 2", id="a half-open point"),
        pytest.param("a = 1 and a = 2", id="two values at once"),
        pytest.param("a = 1 and a != 1", id="a value and not that value"),
        pytest.param("a >= 1 and a <= 1 and a != 1", id="one number, taken out"),
        pytest.param("a = 1 and a is a string", id="two kinds at once"),
        pytest.param("a in (true,false) and a != true and a != false", id="no boolean left"),
        pytest.param("a starts with 'a' and a starts with 'b'", id="two first letters"),
        pytest.param("a ends with 'ab' and a ends with 'bb'", id="suffixes disagree"),
        pytest.param("a = 'ab' and a contains 'c'", id="a word without the part"),
        pytest.param("a > 2 and b > 3 and a < 1", id="one attribute is enough"),
    ],
)
def test_a_contradiction_matches_nothing_and_is_covered_by_all(text: str) -> None:
    nothing = Filter.parse(text)
    assert not nothing.is_satisfiable
    assert nothing == Filter.parse("z = 1 and z = 2")
    assert hash(nothing) == hash(Filter.parse("z = 1 and z = 2"))
    assert Filter.parse("q = 1").covers(nothing)
    assert not nothing.covers(Filter.parse("q = 1"))
    assert not nothing.announces(nothing)


def test_an_advertisement_announces_only_interest_in_attributes_it_names() -> None:
    # Thesis, figure 3.1: a publisher advertises a>1; a>5 and a>9 travel towards it.
    advertisement = Filter.parse("[a,>,1]")
    assert advertisement.announces(Filter.parse("a > 5"))
    assert advertisement.announces(Filter.parse("a > 9"))
    assert not advertisement.announces(Filter.parse("a < 1"))
    assert not advertisement.announces(Filter.parse("a > 5 and b > 5"))
    assert Filter.parse("[a,isPresent,0],[b,isPresent,'']").announces(Filter.parse("a > 5"))
    assert not Filter.parse("[a,isPresent,0]").announces(Filter.parse("a = 'five'"))


def test_an_advertisement_permits_a_record_with_all_its_attributes_and_no_other() -> None:
    advertisement = Filter.parse("a > 1 and b is a string")
    assert advertisement.permits({"a": 2, "b": "x"})
    assert not advertisement.permits({"a": 2})
    assert not advertisement.permits({"a": 1, "b": "x"})
    assert not advertisement.permits({"a": 2, "b": "x", "c": 3})


def test_a_copy_of_a_filter_is_as_good_as_the_filter() -> None:
    original = Filter.parse("a = 1 and b starts with 'x'")
    for copy in (pickle.loads(pickle.dumps(original)), deepcopy(original)):  # noqa: S301
        assert copy == original
        assert copy.predicates == original.predicates
        assert copy.constraints["a"].only_value == 1
        assert copy.constraints["b"].only_value is None


def test_a_filter_has_one_to_sixty_four_predicates() -> None:
    one = Predicate("a", Operator.ABOVE, 1)
    assert Filter([one] * PREDICATES_PER_FILTER_MAX) == Filter([one])
    for count in (0, PREDICATES_PER_FILTER_MAX + 1):
        with pytest.raises(ContentError, match=f"a filter of {count} predicates"):
            Filter([one] * count)


def test_an_advertisement_permits_by_values_also_when_it_knows_the_names() -> None:
    advertisement = Filter.parse("class = 'STOCK' and price > 5 and note is present")
    for _ in range(2):
        assert advertisement.permits({"class": "STOCK", "price": 6, "note": "x"})
        assert not advertisement.permits({"class": "STOCK", "price": 5, "note": "x"})
        assert not advertisement.permits({"class": "BOND", "price": 6, "note": "x"})
        assert not advertisement.permits({"class": "STOCK", "price": 6})
        assert not advertisement.permits({"class": "STOCK", "price": 6, "note": "x", "more": 1})


def test_an_advertisement_permits_any_order_of_attributes() -> None:
    names = [f"a{number}" for number in range(6)]
    advertisement = Filter.parse(" and ".join(f"{name} is present" for name in names))
    for _ in range(3):
        for turn in range(30):
            order = names[turn % 6 :] + names[: turn % 6]
            if turn >= 6:
                order.insert(turn % 5, order.pop())
            assert advertisement.permits(dict.fromkeys(order, turn))
            assert not advertisement.permits(dict.fromkeys(order[1:], turn))
