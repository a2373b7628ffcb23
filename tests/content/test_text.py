"""The text forms: what they say, how they print, and where a mistake is pointed at."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.content.reference import DOMAINS

from godwit.content.filters import Filter
from godwit.content.predicates import Operand, Operator, Predicate
from godwit.content.text import (
    A_READABLE_OPERATOR,
    A_VALUE,
    AN_OPERATOR,
    format_record,
    parse_predicates,
    parse_record,
)
from godwit.content.values import (
    ATTRIBUTE_LENGTH_MAX,
    ATTRIBUTES_PER_RECORD_MAX,
    INTEGER_MAX,
    INTEGER_MIN,
    PREDICATES_PER_FILTER_MAX,
    STRING_LENGTH_MAX,
    VALUES_PER_LIST_MAX,
    Kind,
    Value,
    check_record,
)
from godwit.errors import ContentError, TextError

T = TypeVar("T")

IS_KIND = "'present', 'a number', 'a string' or 'a boolean' after 'is'"
MORE_PADRES = "',' and another [attribute,operator,value], or the end"
MORE_READABLE = "'and' and another condition, or the end"


@pytest.mark.parametrize(
    ("operator", "operand", "spellings"),
    [
        (Operator.EQUAL, 5, "[a,=,5]  [a,eq,5]  [a,EQ,+5]  a = 5  a=5  a eq 5"),
        (Operator.EQUAL, "b", "[a,=,b]  [a,eq,'b']  [ a , eq , \"b\" ] ;  a = 'b'  a eq \"b\""),
        (Operator.EQUAL, True, "[a,=,true]  [a,eq,TRUE]  a = true  a=True"),
        (Operator.NOT_EQUAL, 5, "[a,!=,5]  [a,neq,5]  a != 5  a neq 5  a!=5"),
        (Operator.BELOW, -5, "[a,<,-5]  a < -5  a<-5"),
        (Operator.ABOVE, 0.5, "[a,>,0.5]  [a,>,.5]  a > 5e-1  a>+.5"),
        (Operator.AT_MOST, 5.0, "[a,<=,5.0]  [a,<=,5.]  a <= 5e0  a<=0.5E+1"),
        (Operator.AT_LEAST, 5, "[a,>=,5]  a >= 5  a>=5"),
        (
            Operator.IN,
            (1, "b", False),
            "[a,in,(1,b,false)]  a in (1,'b',false)  a IN( 1,'b',False)",
        ),
        (Operator.STARTS_WITH, "b", "[a,str-prefix,'b']  [a,STR-PREFIX,b]  a starts with 'b'"),
        (Operator.ENDS_WITH, "b", "[a,str-suffix,b]  [a,str-postfix,b]  a Ends With 'b'"),
        (Operator.CONTAINS, "b", "[a,str-contains,b]  a contains 'b'  a contains'b'"),
        (Operator.PRESENT, None, "[a,isPresent,*]  [a,ispresent]  [a,=,*]  a is present"),
        (Operator.PRESENT, Kind.NUMBER, "[a,isPresent,0]  [a,isPresent,-1.5]  a is a number"),
        (Operator.PRESENT, Kind.STRING, "[a,isPresent,'00-00-00']  [a,isPresent,x]  a is a string"),
        (Operator.PRESENT, Kind.BOOLEAN, "[a,isPresent,false]  a is a boolean  a IS A Boolean"),
    ],
)
def test_every_spelling_reads_to_the_same_predicate(
    operator: Operator, operand: Operand, spellings: str
) -> None:
    for spelling in spellings.split("  "):
        (predicate,) = parse_predicates(spelling)
        assert repr(predicate) == repr(Predicate("a", operator, operand)), spelling


def test_the_thesis_reads_in_both_forms() -> None:
    padres = "[class,eq,'STOCK'],[volume,>,300000],[symbol,in,('A','B')],[date,isPresent,*];"
    readable = "class = 'STOCK' and volume > 300000 and symbol in ('A','B') and date is present"
    assert parse_predicates(padres) == parse_predicates(readable)
    assert str(Filter.parse(padres)) == readable
    assert Filter.parse(readable).padres() + ";" == padres


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("'O''Hare'", "O'Hare", id="a doubled quote is one"),
        pytest.param("'say \"hi\"'", 'say "hi"', id="the other quote is a letter"),
        pytest.param('"say ""hi"""', 'say "hi"', id="double quotes double too"),
        pytest.param("''''", "'", id="a quote alone"),
        pytest.param("''", "", id="nothing"),
        pytest.param("' a, ] b;\n'", " a, ] b;\n", id="anything goes between quotes"),
        pytest.param("'5'", "5", id="a quoted number is a string"),
        pytest.param("'true'", "true", id="a quoted truth is a string"),
        pytest.param("'*'", "*", id="a quoted star is a string"),
        pytest.param("9007199254740993", 2**53 + 1, id="2**53 + 1 stays exact"),
        pytest.param(str(INTEGER_MAX), INTEGER_MAX, id="the largest integer"),
        pytest.param(str(INTEGER_MIN), INTEGER_MIN, id="the smallest integer"),
        pytest.param("1.0", 1.0, id="a float stays a float"),
        pytest.param("1e3", 1000.0, id="an exponent makes a float"),
        pytest.param("-0.0", -0.0, id="minus zero"),
        pytest.param("9223372036854775808.0", 2.0**63, id="a float may be larger than an integer"),
    ],
)
def test_a_value_reads_as(text: str, value: Value) -> None:
    for form in (f"a = {text}", f"[a,=,{text}]"):
        (predicate,) = parse_predicates(form)
        assert repr(predicate.operand) == repr(value)
    assert repr(parse_record(f"[a,{text}]")["a"]) == repr(value)


@pytest.mark.parametrize("word", ["YHOO", "18.37.5", "1_000", "--5", "a*b", "18/04/2007", "x=y"])
def test_a_bare_word_is_a_string_in_padres_and_a_slip_in_the_readable_form(word: str) -> None:
    assert parse_predicates(f"[a,eq,{word}]") == (Predicate("a", Operator.EQUAL, word),)
    assert parse_record(f"[a,{word}]") == {"a": word}
    with pytest.raises(TextError) as caught:
        parse_predicates(f"a = {word}")
    assert (caught.value.column, caught.value.expected) == (5, f"{A_VALUE}; put a string in quotes")


LONG_NAME = "a" * (ATTRIBUTE_LENGTH_MAX + 1)
LONG_STRING = "x" * (STRING_LENGTH_MAX + 1)
TOO_LONG = "a string of at most 4096 characters, not 4097"
NAME_TOO_LONG = "an attribute name of at most 128 characters, not 129"
LONG_LIST = "(" + ",".join("1" * (VALUES_PER_LIST_MAX + 1)) + ")"
LIST_TOO_LONG = "at most 1024 values in a list"
MANY = ["a > 1"] * (PREDICATES_PER_FILTER_MAX + 1)
MANY_PADRES = ["[a,>,1]"] * (PREDICATES_PER_FILTER_MAX + 1)
FINITE = "a finite number, or quotes around a string"
FITTING = "a finite number that fits into 64 bits"


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        pytest.param("", 1, "an attribute name", id="nothing at all"),
        pytest.param("  ", 3, "an attribute name", id="blanks only"),
        pytest.param("5 > a", 1, "an attribute name", id="the wrong way round"),
        pytest.param("a", 2, A_READABLE_OPERATOR, id="an attribute alone"),
        pytest.param("a == 5", 4, A_VALUE + "; put a string in quotes", id="two equal signs"),
        pytest.param("a like 'b'", 3, A_READABLE_OPERATOR, id="no such operator"),
        pytest.param("a >", 4, A_VALUE, id="no value"),
        pytest.param("a > 'b'", 5, "a number after '>'", id="a string is not ordered"),
        pytest.param("a <= true", 6, "a number after '<='", id="a boolean is not ordered"),
        pytest.param("a contains 5", 12, "a string after 'contains'", id="a number has no parts"),
        pytest.param("a starts 'b'", 10, "'starts with'", id="starts what"),
        pytest.param("a ends within 'b'", 8, "'ends with'", id="with is a whole word"),
        pytest.param("a is", 5, IS_KIND, id="is what"),
        pytest.param("a is here", 6, IS_KIND, id="is something else"),
        pytest.param("a is a date", 6, IS_KIND, id="no such kind"),
        pytest.param("a is a", 7, IS_KIND, id="a what"),
        pytest.param("a = 1 or b = 2", 7, MORE_READABLE, id="there is no or"),
        pytest.param("a = 1 andy = 2", 7, MORE_READABLE, id="and is a whole word"),
        pytest.param("a = 1 and_y = 2", 7, MORE_READABLE, id="and ends where the word ends"),
        pytest.param("a = 1;", 6, MORE_READABLE, id="no semicolon in the readable form"),
        pytest.param("a = 1 and", 10, "an attribute name", id="and nothing"),
        pytest.param("a in 1", 6, "'(' and a list of values", id="a list without parentheses"),
        pytest.param("a in (1", 8, "',' and another value, or ')'", id="a list without end"),
        pytest.param("a in ()", 7, A_VALUE, id="an empty list"),
        pytest.param("a = 'b", 5, "a closing ' for the string that opens here", id="open quote"),
        pytest.param("a = 'b''", 5, "a closing ' for the string that opens here", id="odd quotes"),
        pytest.param("a = nan", 5, FINITE, id="NaN"),
        pytest.param("a > -Infinity", 5, FINITE, id="minus infinity"),
        pytest.param("a = 1e999", 5, FITTING, id="a float that overflows"),
        pytest.param(f"a = {INTEGER_MAX + 1}", 5, FITTING, id="2**63"),
        pytest.param(f"a = {INTEGER_MIN - 1}", 5, FITTING, id="below -2**63"),
        pytest.param("a = " + "9" * 5000, 5, FITTING, id="thousands of digits"),
        pytest.param(f"a = '{LONG_STRING}'", 5, TOO_LONG, id="a long string"),
        pytest.param(f"{LONG_NAME} is present", 1, NAME_TOO_LONG, id="a long name"),
        pytest.param(f"a in {LONG_LIST}", 2055, LIST_TOO_LONG, id="a long list"),
        pytest.param(" and ".join(MANY), 64 * 10 + 1, "at most 64 predicates in a filter", id="65"),
        pytest.param("[", 2, "an attribute name", id="padres: a bracket alone"),
        pytest.param("[a]", 3, "',' and an operator", id="padres: an attribute alone"),
        pytest.param("[a,like,5]", 4, AN_OPERATOR, id="padres: no such operator"),
        pytest.param("[a,5]", 4, AN_OPERATOR, id="padres: a record is no filter"),
        pytest.param("[a,>]", 5, "',' and a value", id="padres: no value"),
        pytest.param("[a,>,]", 6, A_VALUE + ", or a word", id="padres: an empty value"),
        pytest.param(
            "[a,>,*]", 6, "a value: '*' goes with = and isPresent only", id="padres: star"
        ),
        pytest.param("[a,>,5", 7, "']'", id="padres: no end"),
        pytest.param("[a,>,b]", 6, "a number after '>'", id="padres: a word is not ordered"),
        pytest.param("[a,str-prefix,5]", 15, "a string after 'starts with'", id="padres: no parts"),
        pytest.param("[a,=,b c]", 8, "']'", id="padres: two bare words"),
        pytest.param("[a,=,1] [b,=,2]", 9, MORE_PADRES, id="padres: no comma"),
        pytest.param(
            "[a,=,1],", 9, "'[' and a predicate [attribute,operator,value]", id="padres: ,"
        ),
        pytest.param(
            "[a,=,1];;", 9, "the end of the filter after ';'", id="padres: two semicolons"
        ),
        pytest.param("[a,=,inf]", 6, FINITE, id="padres: infinity"),
        pytest.param("[a,in,b]", 7, "'(' and a list of values", id="padres: no list"),
        pytest.param(f"[a,eq,{LONG_STRING}]", 7, TOO_LONG, id="padres: a long word"),
        pytest.param(f"[{LONG_NAME},isPresent]", 2, NAME_TOO_LONG, id="padres: a long name"),
        pytest.param(
            ",".join(MANY_PADRES), 64 * 8 + 1, "at most 64 predicates in a filter", id="padres: 65"
        ),
    ],
)
def test_a_bad_filter_is_shown_where_it_goes_wrong(text: str, column: int, expected: str) -> None:
    with pytest.raises(TextError) as caught:
        Filter.parse(text)
    assert (caught.value.column, caught.value.expected) == (column, expected)
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        pytest.param("", 1, "'[' and a pair [attribute,value]", id="nothing at all"),
        pytest.param("[a]", 3, "',' and a value", id="no value"),
        pytest.param("[a,1", 5, "']'", id="no end"),
        pytest.param("[a,1],[a,2]", 8, "each attribute once, but a is repeated", id="twice"),
        pytest.param(
            "[a,1][b,2]", 6, "',' and another [attribute,value], or the end", id="no comma"
        ),
        pytest.param("[a,1];x", 7, "the end of the record", id="more after the end"),
        pytest.param("[a,=,1]", 5, "']'", id="a filter is no record"),
        pytest.param("[a,nan]", 4, FINITE, id="NaN"),
        pytest.param(f"[a,{2**63}]", 4, FITTING, id="2**63"),
        pytest.param(f"[{LONG_NAME},1]", 2, NAME_TOO_LONG, id="a long name"),
        pytest.param(f"[a,'{LONG_STRING}']", 4, TOO_LONG, id="a long string"),
    ],
)
def test_a_bad_record_is_shown_where_it_goes_wrong(text: str, column: int, expected: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_record(text)
    assert (caught.value.column, caught.value.expected) == (column, expected)


def test_an_error_shows_the_text_with_a_mark_under_the_column() -> None:
    with pytest.raises(TextError) as caught:
        Filter.parse("price\t> 'ten'")
    shown = ["column 9: expected a number after '>'", "  price > 'ten'", "          ^"]
    assert str(caught.value).splitlines() == shown
    with pytest.raises(TextError) as caught:
        Filter.parse("a = '" + "x" * 100 + "' or b = 1")
    _, excerpt, mark = str(caught.value).splitlines()
    assert excerpt[mark.index("^") :] == "or b = 1"


def test_what_is_no_text_is_refused() -> None:
    parsers: tuple[Callable[[str], object], ...] = (Filter.parse, parse_record)
    for parse in parsers:
        with pytest.raises(ContentError, match="is text; got int"):
            parse(5)  # type: ignore[arg-type]


def test_a_record_of_too_many_attributes_is_refused() -> None:
    pairs = [f"[a{number},1]" for number in range(ATTRIBUTES_PER_RECORD_MAX + 1)]
    assert len(parse_record(",".join(pairs[:-1]) + ";")) == ATTRIBUTES_PER_RECORD_MAX
    with pytest.raises(ContentError, match="a record of 257 attributes"):
        parse_record(",".join(pairs))


values = st.one_of(
    st.integers(INTEGER_MIN, INTEGER_MAX),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.text("'\" ,;[]()*a", max_size=8),
    st.booleans(),
)
names = st.from_regex(r"[^\W\d][\w.%$#@:/-]{0,7}", fullmatch=True)
predicates = st.one_of(
    st.builds(Predicate, names, st.sampled_from([Operator.EQUAL, Operator.NOT_EQUAL]), values),
    st.builds(Predicate, names, st.just(Operator.IN), st.lists(values, min_size=1).map(tuple)),
    st.builds(Predicate, names, st.just(Operator.CONTAINS), st.text(max_size=8)),
    st.builds(Predicate, names, st.just(Operator.PRESENT), st.sampled_from([None, *Kind])),
)


@given(st.lists(predicates, min_size=1, max_size=5))
@settings(deadline=None, derandomize=True, max_examples=400)
def test_any_filter_prints_in_both_forms_and_reads_back_the_same(drawn: list[Predicate]) -> None:
    original = Filter(drawn)
    for text in (str(original), original.padres(), original.padres() + ";"):
        again = Filter.parse(text)
        assert again == original
        assert repr(again.predicates) == repr(original.predicates)


@given(st.dictionaries(names, values, min_size=1))
@settings(deadline=None, derandomize=True, max_examples=400)
def test_any_record_prints_and_reads_back_the_same(record: dict[str, Value]) -> None:
    assert repr(parse_record(format_record(record))) == repr(check_record(record))


PIECES = [*"[](),;*'\"<>=! \n\tab1.-eE+#é", "and", "is", "in", "eq", "true", "nan", "isPresent"]
PIECES += ["starts with", "str-prefix", "1e9", "99999999999999999999", "[a,=,1]", "''"]


def garbled(random: Random, text: str) -> str:
    """`text` with up to three small changes, or now and then no trace of it."""
    if random.random() < 0.2:
        return "".join(random.choices(PIECES, k=random.randint(0, 12)))
    for _ in range(random.randint(0, 3)):
        at, length = random.randint(0, len(text)), random.choice((0, 0, 1, 1, 2, 5))
        text = text[:at] + random.choice(["", *PIECES]) + text[at + length :]
    return text


def read_or_refuse(parse: Callable[[str], T], text: str) -> T | TextError:
    try:
        return parse(text)
    except TextError as error:
        return error


@pytest.mark.parametrize("seed", range(4))
def test_any_filter_text_is_read_or_refused_with_a_column_inside_it(seed: int) -> None:
    random = Random(seed)
    read = refused = 0
    for _ in range(5_000):
        original = Filter(DOMAINS[seed % len(DOMAINS)].draw(random))
        forms = (str(original), original.padres(), original.padres() + ";")
        text = garbled(random, random.choice(forms))
        result = read_or_refuse(Filter.parse, text)
        if isinstance(result, TextError):
            assert 1 <= result.column <= len(text) + 1, f"seed {seed}: {text!r}"
            refused += 1
            continue
        for again in (str(result), result.padres()):
            back = Filter.parse(again)
            assert back == result, f"seed {seed}: {text!r}, {again!r}"
            assert repr(back.predicates) == repr(result.predicates), f"seed {seed}: {text!r}"
        read += 1
    assert min(read, refused) > 1_000


@pytest.mark.parametrize("seed", range(4))
def test_any_record_text_is_read_or_refused_with_a_column_inside_it(seed: int) -> None:
    random = Random(seed)
    read = refused = 0
    for _ in range(5_000):
        text = garbled(random, format_record(DOMAINS[seed % len(DOMAINS)].draw_record(random)))
        result = read_or_refuse(parse_record, text)
        if isinstance(result, TextError):
            assert 1 <= result.column <= len(text) + 1, f"seed {seed}: {text!r}"
            refused += 1
            continue
        assert repr(parse_record(format_record(result))) == repr(result), f"seed {seed}: {text!r}"
        read += 1
    assert min(read, refused) > 1_000


def test_a_text_has_at_most_a_million_characters() -> None:
    with pytest.raises(ContentError, match="a filter of 1000001 characters; at most 1000000"):
        Filter.parse(" " * 1_000_001)
    with pytest.raises(ContentError, match="a record of 1000001 characters; at most 1000000"):
        parse_record(" " * 1_000_001)
