"""One condition on one attribute, and the region of values that satisfies it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import TypeAlias

from godwit.content.regions import (
    PRESENT,
    PRESENT_OF_KIND,
    Constraint,
    Interval,
    Pattern,
    exactly,
    interval,
    pattern,
)
from godwit.content.values import (
    VALUES_PER_LIST_MAX,
    Kind,
    Number,
    Value,
    check_attribute,
    check_value,
    hash_key,
    kind_of,
)
from godwit.errors import ContentError


class Operator(Enum):
    """The operators, by the symbol of the readable form."""

    EQUAL = "="
    NOT_EQUAL = "!="
    BELOW = "<"
    ABOVE = ">"
    AT_MOST = "<="
    AT_LEAST = ">="
    IN = "in"
    STARTS_WITH = "starts with"
    ENDS_WITH = "ends with"
    CONTAINS = "contains"
    PRESENT = "is present"


ORDERINGS = {Operator.BELOW, Operator.ABOVE, Operator.AT_MOST, Operator.AT_LEAST}
STRING_TESTS = {Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS}

#: A value; several for IN; for PRESENT the kind of value required, or None for any.
Operand: TypeAlias = Value | tuple[Value, ...] | Kind | None


@dataclass(frozen=True, slots=True)
class Predicate:
    """`attribute operator operand`.  An attribute that is absent satisfies no predicate."""

    attribute: str
    operator: Operator
    operand: Operand = None

    def __post_init__(self) -> None:
        check_attribute(self.attribute)
        operand = check_operand(self.attribute, self.operator, self.operand)
        object.__setattr__(self, "operand", operand)

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Predicate) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        """What two equal predicates share.  Like a filter, a predicate tells 1 from True."""
        operand = self.operand
        if isinstance(operand, tuple):
            return self.attribute, self.operator, *map(hash_key, operand)
        return self.attribute, self.operator, hash_key(operand)

    @property
    def characters(self) -> int:
        """How long the strings of the operand are, all together."""
        values = self.operand if isinstance(self.operand, tuple) else (self.operand,)
        return sum(len(value) for value in values if isinstance(value, str))

    @property
    def constraint(self) -> Constraint:
        """The values that satisfy this predicate.  All are of the operand's own kind."""
        match self.operator, self.operand:
            case Operator.PRESENT, Kind() as kind:
                return PRESENT_OF_KIND[kind]
            case Operator.PRESENT, None:
                return PRESENT
            case Operator.IN, tuple() as values:
                return exactly(values)
            case Operator.EQUAL, int() | float() | str() as value:
                return exactly([value])
            case Operator.NOT_EQUAL, int() | float() | str() as value:
                return _all_but(value)
            case operator, str() as text:
                return Constraint(strings=_strings(operator, text))
            case operator, int() | float() as number:
                return Constraint(numbers=_numbers(operator, number))
            case _:
                raise AssertionError(f"check_operand let {self} through")


def _all_but(value: Value) -> Constraint:
    kind = kind_of(value)
    if isinstance(value, str):
        return Constraint(strings=pattern("", "", (), (value,)))
    if kind is Kind.BOOLEAN:
        return exactly([not value])
    return Constraint(numbers=interval(-inf, True, inf, True, (value,)))


def _numbers(operator: Operator, bound: Number) -> Interval:
    match operator:
        case Operator.BELOW | Operator.AT_MOST:
            return Interval(high=bound, high_open=operator is Operator.BELOW)
        case Operator.ABOVE | Operator.AT_LEAST:
            return Interval(low=bound, low_open=operator is Operator.ABOVE)
        case _:
            raise AssertionError(f"{operator} does not compare numbers")


def _strings(operator: Operator, text: str) -> Pattern:
    match operator:
        case Operator.STARTS_WITH:
            return Pattern(prefix=text)
        case Operator.ENDS_WITH:
            return Pattern(suffix=text)
        case Operator.CONTAINS:
            return Pattern(substrings=frozenset({text} - {""}))
        case _:
            raise AssertionError(f"{operator} does not test strings")


def check_operand(attribute: str, operator: Operator, operand: object) -> Operand:
    """Return `operand` if `operator` can take it, else raise ContentError."""
    if not isinstance(operator, Operator):
        raise ContentError(f"{attribute}: {operator!r} is not an Operator")
    match operator, operand:
        case Operator.PRESENT, (None | Kind()) as kind:
            return kind
        case Operator.IN, tuple() as values if values:
            if len(values) > VALUES_PER_LIST_MAX:
                raise ContentError(
                    f"{attribute}: a list of {len(values)} values;"
                    f" at most {VALUES_PER_LIST_MAX} are allowed"
                )
            return tuple(check_value(value, of=attribute) for value in values)
        case ((Operator.PRESENT | Operator.IN), _):
            wanted = "a list of values" if operator is Operator.IN else "a kind or nothing"
            raise ContentError(f"{attribute}: {operator.value!r} takes {wanted}")
    value = check_value(operand, of=attribute)
    kind = kind_of(value)
    if operator in ORDERINGS and kind is not Kind.NUMBER:
        raise ContentError(f"{attribute}: {operator.value!r} compares numbers, not a {kind.value}")
    if operator in STRING_TESTS and kind is not Kind.STRING:
        raise ContentError(f"{attribute}: {operator.value!r} tests strings, not a {kind.value}")
    return value
