"""The values of the language, its limits, and what a predicate takes."""

from __future__ import annotations

from enum import IntEnum
from math import inf, nan

import numpy as np
import pytest

from godwit.content.filters import Filter
from godwit.content.predicates import ORDERINGS, STRING_TESTS, Operator, Predicate
from godwit.content.values import (
    ATTRIBUTE_LENGTH_MAX,
    ATTRIBUTES_PER_RECORD_MAX,
    INTEGER_MAX,
    INTEGER_MIN,
    STRING_LENGTH_MAX,
    VALUES_PER_LIST_MAX,
    Kind,
    Value,
    check_attribute,
    check_record,
    check_value,
    hash_key,
    kind_of,
)
from godwit.errors import ContentError


class Rating(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (0, Kind.NUMBER),
        (-1.5, Kind.NUMBER),
        (INTEGER_MAX, Kind.NUMBER),
        (INTEGER_MIN, Kind.NUMBER),
        (1e308, Kind.NUMBER),
        ("", Kind.STRING),
        ("x" * STRING_LENGTH_MAX, Kind.STRING),
        (True, Kind.BOOLEAN),
        (False, Kind.BOOLEAN),
    ],
)
def test_a_value_is_a_number_a_string_or_a_boolean(value: Value, kind: Kind) -> None:
    checked = check_value(value, of="a")
    assert checked == value
    assert type(checked) is type(value)
    assert kind_of(value) is kind


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(INTEGER_MAX + 1, "a: an integer must fit into 64 bits", id="2**63"),
        pytest.param(INTEGER_MIN - 1, "a: an integer must fit into 64 bits", id="below -2**63"),
        pytest.param(nan, "a: nan is not allowed; use a finite number", id="NaN"),
        pytest.param(inf, "a: inf is not allowed; use a finite number", id="infinity"),
        pytest.param(-inf, "a: -inf is not allowed; use a finite number", id="minus infinity"),
        pytest.param("x" * (STRING_LENGTH_MAX + 1), "at most 4096 are allowed", id="a long string"),
        pytest.param(None, "a: None is not a value; leave the attribute out", id="nothing"),
        pytest.param(b"x", "a: bytes is not a value; send bytes as the payload", id="bytes"),
        pytest.param([1], "a: list is not a value; use an attribute for each part", id="a list"),
    ],
)
def test_what_is_no_value_is_refused_everywhere(value: object, said: str) -> None:
    with pytest.raises(ContentError, match=said):
        check_value(value, of="a")
    with pytest.raises(ContentError, match=said):
        check_record({"a": value})
    with pytest.raises(ContentError, match=said):
        Predicate("a", Operator.EQUAL, value)  # type: ignore[arg-type]
    with pytest.raises(ContentError, match=said):
        Predicate("a", Operator.IN, (1, value))  # type: ignore[arg-type]


def test_numbers_that_only_look_like_python_numbers_become_python_numbers() -> None:
    record = check_record({"price": np.float64(2.0**53), "rating": Rating.HIGH})
    assert [type(value) for value in record.values()] == [float, int]

    at_most = Predicate("price", Operator.AT_MOST, np.float64(2.0**53))
    assert type(at_most.operand) is float
    assert str(Filter([at_most])) == "price <= 9007199254740992.0"
    assert not Filter([at_most]).matches({"price": 2**53 + 1})
    assert str(Filter([Predicate("r", Operator.IN, (Rating.HIGH,))])) == "r in (3)"


def test_one_and_one_point_zero_are_one_key_and_true_is_another() -> None:
    assert hash_key(1) == hash_key(1.0)
    assert hash_key(1) != hash_key(True)
    assert hash_key(0) != hash_key(False)
    assert len({hash_key(value) for value in (0, 0.0, False, 1, 1.0, True, "1")}) == 5


def test_predicates_tell_one_from_true_as_filters_do() -> None:
    for operator in (Operator.EQUAL, Operator.NOT_EQUAL):
        assert Predicate("a", operator, 1) != Predicate("a", operator, True)
        assert Predicate("a", operator, 1) == Predicate("a", operator, 1.0)
    assert Predicate("a", Operator.IN, (0, 1)) != Predicate("a", Operator.IN, (False, True))
    assert hash(Predicate("a", Operator.IN, (0, 1))) == hash(Predicate("a", Operator.IN, (0.0, 1)))
    assert Predicate("a", Operator.EQUAL, 1) != "a = 1"


@pytest.mark.parametrize(
    "name", ["a", "_", "class", "openClose%Diff", "geo.lat", "x-priority", "a1:/@#$", "größe"]
)
def test_an_attribute_name_starts_with_a_letter_or_underscore(name: str) -> None:
    assert check_attribute(name) == name
    assert check_attribute("a" * ATTRIBUTE_LENGTH_MAX)


@pytest.mark.parametrize("name", ["", "1a", "-a", "a b", "a,", "a[", "a'", "a=", "a\n", None, 1])
def test_what_is_no_attribute_name_is_refused(name: object) -> None:
    with pytest.raises(ContentError, match="is not an attribute name: write a letter or _"):
        check_attribute(name)
    with pytest.raises(ContentError, match="is not an attribute name: write a letter or _"):
        check_record({name: 1})  # type: ignore[dict-item]
    with pytest.raises(ContentError, match="is not an attribute name: write a letter or _"):
        Predicate(name, Operator.PRESENT)  # type: ignore[arg-type]


def test_an_attribute_name_has_at_most_128_characters() -> None:
    with pytest.raises(ContentError, match="has 129 characters; at most 128 are allowed"):
        check_attribute("a" * (ATTRIBUTE_LENGTH_MAX + 1))


def test_a_record_has_1_to_256_attributes() -> None:
    full = {f"a{number}": number for number in range(ATTRIBUTES_PER_RECORD_MAX)}
    assert check_record(full) == full
    with pytest.raises(ContentError, match="a record of 257 attributes; at most 256"):
        check_record({**full, "more": 1})
    with pytest.raises(ContentError, match="at least one attribute"):
        check_record({})
    with pytest.raises(ContentError, match="a record maps attributes to values; got list"):
        check_record([("a", 1)])  # type: ignore[arg-type]


def test_a_list_has_1_to_1024_values() -> None:
    Predicate("a", Operator.IN, tuple(range(VALUES_PER_LIST_MAX)))
    with pytest.raises(ContentError, match="a: a list of 1025 values; at most 1024 are allowed"):
        Predicate("a", Operator.IN, tuple(range(VALUES_PER_LIST_MAX + 1)))
    with pytest.raises(ContentError, match="a: 'in' takes a list of values"):
        Predicate("a", Operator.IN, ())
    with pytest.raises(ContentError, match="a: 'in' takes a list of values"):
        Predicate("a", Operator.IN, 1)


def test_present_takes_a_kind_or_nothing() -> None:
    assert Predicate("a", Operator.PRESENT).operand is None
    for kind in Kind:
        assert Predicate("a", Operator.PRESENT, kind).operand is kind
    with pytest.raises(ContentError, match="a: 'is present' takes a kind or nothing"):
        Predicate("a", Operator.PRESENT, 0)


@pytest.mark.parametrize("operator", sorted(ORDERINGS, key=str))
@pytest.mark.parametrize("operand", ["1", True])
def test_only_numbers_are_ordered(operator: Operator, operand: Value) -> None:
    Predicate("a", operator, 1)
    with pytest.raises(ContentError, match=f"'{operator.value}' compares numbers, not a"):
        Predicate("a", operator, operand)


@pytest.mark.parametrize("operator", sorted(STRING_TESTS, key=str))
@pytest.mark.parametrize("operand", [1, False])
def test_only_strings_have_parts(operator: Operator, operand: Value) -> None:
    Predicate("a", operator, "")
    with pytest.raises(ContentError, match=f"'{operator.value}' tests strings, not a"):
        Predicate("a", operator, operand)


@pytest.mark.parametrize(
    "operator", sorted(set(Operator) - {Operator.PRESENT, Operator.IN}, key=str)
)
def test_a_comparison_takes_one_value(operator: Operator) -> None:
    for operand in (None, (1, 2), Kind.NUMBER):
        with pytest.raises(ContentError, match="is not a value; "):
            Predicate("a", operator, operand)


class Word(str):
    """A string that encoders do not know."""

    __slots__ = ()


def test_a_checked_record_is_a_plain_copy() -> None:
    record = {"word": Word("a"), "number": 1}
    checked = check_record(record)
    record["number"] = 2

    assert checked == {"word": "a", "number": 1}
    assert type(checked["word"]) is str


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ContentError, match="x: the string contains half of a surrogate pair"):
        check_record({"x": "a\ud800"})
    assert check_record({"x": "\U0001f426"}) == {"x": "\U0001f426"}


def test_the_strings_of_a_filter_have_a_limit_together() -> None:
    predicates = [Predicate("x", Operator.CONTAINS, f"{n:04d}" * 1024) for n in range(17)]
    assert Filter(predicates[:16]).is_satisfiable
    with pytest.raises(ContentError, match="strings of 69632 characters in one filter; at most"):
        Filter(predicates)
