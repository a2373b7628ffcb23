"""A second implementation of the content language, from its specification, by trying values.

    matches     one operator after the other, numbers as exact fractions
    Domain      a few operands for random filters, and the witnesses that distinguish those filters
    Extent      for each attribute a filter names, the witnesses it accepts, as the bits of an int

It uses only the data classes of godwit.content: the fields of a Predicate, none of its methods.

Why attributes can be treated one by one: a filter is a conjunction and each predicate concerns
one attribute, so the records of a filter are a product of sets, one for each attribute.  Products
meet when every factor does, and one product is inside another when it is empty or every factor is.
Absence is a witness too, bit 0; an attribute that a filter does not name may be anything, -1.

Why the witnesses of a Domain are enough:

W1  Numbers.  No predicate distinguishes two numbers between neighbouring operands.  So the
    operands, a number in each gap and one beyond each end are enough.
W2  Strings.  Take a satisfiable conjunction.  If it has = or in, it holds some operands only, and
    these are witnesses.  Else let P be its longest prefix, S its longest suffix and C the strings
    it asks to be contained: the witness w = P # C1 # C2 # ... # S satisfies it, as no operand
    has a #.  Now let some string satisfy the conjunction and fail a predicate.  If that
    predicate is != v, the witness v shows it.  If it is = or in, w shows it.  If it asks for
    a part that P, S and C do not imply, then w has no such part, and w shows it.
W3  Booleans are two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from random import Random
from typing import TypeAlias

from godwit.content.predicates import Operand, Operator, Predicate
from godwit.content.values import Kind, Record, Value

Witness: TypeAlias = Value | Fraction
Extent: TypeAlias = Mapping[str, int]

FRESH = "#"
ABSENT_BIT = 1
ANYTHING = -1

ORDERINGS = (Operator.BELOW, Operator.ABOVE, Operator.AT_MOST, Operator.AT_LEAST)
STRING_TESTS = (Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS)
EQUALITIES = (Operator.EQUAL, Operator.NOT_EQUAL, Operator.IN)


def matches(predicates: Iterable[Predicate], record: Record) -> bool:
    return all(
        predicate.attribute in record and holds(predicate, record[predicate.attribute])
        for predicate in predicates
    )


def holds(predicate: Predicate, value: Witness) -> bool:
    """Whether `value`, which is present, satisfies `predicate`."""
    symbol, operand = predicate.operator.value, predicate.operand
    if symbol == "is present":
        return operand is None or (isinstance(operand, Kind) and operand.value == kind(value))
    if isinstance(operand, tuple):
        return any(same(value, each) for each in operand)
    assert operand is not None
    assert not isinstance(operand, Kind)
    if kind(value) != kind(operand):
        return False
    if symbol in ("=", "!="):
        return same(value, operand) == (symbol == "=")
    if isinstance(value, str) and isinstance(operand, str):
        starts = range(len(value) - len(operand) + 1)
        found = [start for start in starts if value[start : start + len(operand)] == operand]
        wanted = {"starts with": starts[:1], "ends with": starts[-1:], "contains": starts}[symbol]
        return any(start in wanted for start in found)
    assert not isinstance(value, str)
    assert not isinstance(operand, str)
    difference = Fraction(value) - Fraction(operand)
    sign = (difference > 0) - (difference < 0)
    return sign in {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}[symbol]


def kind(value: Witness) -> str:
    return {bool: "boolean", str: "string"}.get(type(value), "number")


def same(a: Witness, b: Witness) -> bool:
    if kind(a) != kind(b):
        return False
    return a == b if isinstance(a, str) or isinstance(b, str) else Fraction(a) == Fraction(b)


def is_satisfiable(a: Extent) -> bool:
    return all(a.values())


def covers(a: Extent, b: Extent) -> bool:
    return not is_satisfiable(b) or not any(
        b.get(attribute, ANYTHING) & ~accepted for attribute, accepted in a.items()
    )


def intersects(a: Extent, b: Extent) -> bool:
    return all(a.get(attribute, ANYTHING) & b.get(attribute, ANYTHING) for attribute in {*a, *b})


def announces(a: Extent, interest: Extent) -> bool:
    """Is there a record with exactly the attributes of `a` that both accept?"""
    attributes = {*a, *interest}
    return intersects({name: a.get(name, ABSENT_BIT) for name in attributes}, interest)


def relation(a: Extent, b: Extent) -> str:
    if not intersects(a, b):
        return "empty"
    inside, outside = covers(b, a), covers(a, b)
    if inside and outside:
        return "equal"
    return "subset" if inside else "superset" if outside else "intersect"


class Domain:
    """Operands to draw from, and witnesses for every filter over them."""

    def __init__(self, *, numbers: Sequence[float], strings: Sequence[str]) -> None:
        assert not any(FRESH in text for text in strings), "W2 needs a letter of its own"
        self.numbers = tuple(numbers)
        self.strings = tuple(strings)
        self.witnesses: tuple[Witness, ...] = (
            True,
            False,
            *self.numbers,
            *_between_and_beyond(self.numbers),
            *sorted(_strings(self.strings)),
        )
        self.values = tuple(w for w in self.witnesses if not isinstance(w, Fraction))
        self._accepted: dict[str, int] = {}

    def extent(self, predicates: Iterable[Predicate]) -> Extent:
        accepted: dict[str, int] = {}
        for predicate in predicates:
            known = accepted.get(predicate.attribute, ANYTHING)
            accepted[predicate.attribute] = known & self._accepts(predicate)
        return accepted

    def _accepts(self, predicate: Predicate) -> int:
        if isinstance(predicate.operand, tuple):  # By definition: any of these.
            bits = 0
            for value in predicate.operand:
                bits |= self._accepts(Predicate("any", Operator.EQUAL, value))
            return bits
        key = f"{predicate.operator} {predicate.operand!r}"
        if key not in self._accepted:
            answers = (holds(predicate, witness) for witness in self.witnesses)
            self._accepted[key] = sum(2 << place for place, yes in enumerate(answers) if yes)
        return self._accepted[key]

    def draw(self, random: Random, attributes: str = "xyz") -> tuple[Predicate, ...]:
        """The predicates of a filter; x is mostly a number, y mostly a string, z is anything."""
        count = random.choice((1, 1, 2, 2, 3, 4))
        return tuple(self._draw_predicate(random, random.choice(attributes)) for _ in range(count))

    def _draw_predicate(self, random: Random, attribute: str) -> Predicate:
        usual = {"x": Kind.NUMBER, "y": Kind.STRING}.get(attribute)
        wanted = random.choice(tuple(Kind)) if usual is None or random.random() < 0.1 else usual
        choices: tuple[Operator, ...] = {
            Kind.NUMBER: (*ORDERINGS, *EQUALITIES, Operator.PRESENT),
            Kind.STRING: (*STRING_TESTS, *STRING_TESTS, *EQUALITIES, Operator.PRESENT),
            Kind.BOOLEAN: (*EQUALITIES, Operator.PRESENT),
        }[wanted]
        operator = random.choice(choices)
        operand: Operand = self._draw_value(random, wanted)
        if operator is Operator.PRESENT:
            operand = random.choice((None, wanted))
        elif operator is Operator.IN:
            kinds = (wanted, wanted, random.choice(tuple(Kind)))
            operand = tuple(self._draw_value(random, k) for k in kinds[: random.randint(1, 3)])
        return Predicate(attribute, operator, operand)

    def _draw_value(self, random: Random, wanted: Kind) -> Value:
        match wanted:
            case Kind.NUMBER:
                return random.choice(self.numbers)
            case Kind.STRING:
                return random.choice(self.strings)
            case Kind.BOOLEAN:
                return random.random() < 0.5

    def draw_record(self, random: Random, attributes: str = "xyz") -> dict[str, Value]:
        carried = [name for name in attributes if random.random() < 0.8] or [attributes[0]]
        return {name: random.choice(self.values) for name in carried}


def _between_and_beyond(numbers: Iterable[float]) -> list[Witness]:
    exact = sorted({Fraction(number) for number in numbers})
    found = [exact[0] - 1, *((a + b) / 2 for a, b in pairwise(exact)), exact[-1] + 1]
    return [float(x) if Fraction(float(x)) == x else x for x in found]


def _strings(operands: Sequence[str]) -> set[str]:
    """The witnesses of W2, and all strings of up to four letters for good measure."""
    letters = sorted(set("".join(operands)))
    short = {"".join(word) for length in range(5) for word in product(letters, repeat=length)}
    parts = [part for part in operands if part]
    middles = [chosen for n in range(len(parts) + 1) for chosen in combinations(parts, n)]
    ends = {"", *operands}
    joined = {FRESH.join((p, *middle, s)) for p in ends for middle in middles for s in ends}
    return {*operands, *short, *joined}


#: Small, so that bounds coincide; the second also has neighbours that a float cannot tell apart.
DOMAINS = (
    Domain(numbers=(0, 1, 1.0, 2.5, 3), strings=("", "a", "b", "ab", "ba")),
    Domain(
        numbers=(-1, 2**53, 2.0**53, 2**53 + 1, 2**63 - 1),
        strings=("a", "aa", "ab", "aba", "bab"),
    ),
    Domain(numbers=(0.1, 0.2, 0.3), strings=("", "b", "bb", "ab", "abb")),
)
