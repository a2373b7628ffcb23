"""The two text forms of a filter, and the PADRES form of a record.

    PADRES     [class,eq,'STOCK'],[volume,>,300000],[symbol,in,('A','B')],[date,isPresent,*];
    readable   class = 'STOCK' and volume > 300000 and symbol in ('A','B') and date is present
    record     [class,'STOCK'],[symbol,'YHOO'],[open,18.37]

Both filter forms give the same predicates, and every predicate can be printed in both.
A quote inside a string is doubled: 'O''Hare'.  PADRES also takes "double" quotes and bare words;
the readable form takes either quote, but no bare words, which there are mostly mistakes.
`isPresent` with a dummy value, as in the thesis, requires the kind of that value:
`[volume,isPresent,0]` is `volume is a number`.  An error names the column and what was expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from godwit.content.predicates import ORDERINGS, STRING_TESTS, Operand, Operator, Predicate
from godwit.content.scanner import Scanner
from godwit.content.values import (
    ATTRIBUTE_LENGTH_MAX,
    ATTRIBUTE_PATTERN,
    PREDICATES_PER_FILTER_MAX,
    STRING_LENGTH_MAX,
    TEXT_LENGTH_MAX,
    VALUES_PER_LIST_MAX,
    Kind,
    Record,
    Value,
    check_record,
    check_value,
    kind_of,
)
from godwit.errors import ContentError, TextError

#: Every spelling of every operator, in both forms; the longer spelling of two comes first.
OPERATOR_BY_SPELLING = {
    "<=": Operator.AT_MOST,
    ">=": Operator.AT_LEAST,
    "!=": Operator.NOT_EQUAL,
    "=": Operator.EQUAL,
    "<": Operator.BELOW,
    ">": Operator.ABOVE,
    "eq": Operator.EQUAL,
    "neq": Operator.NOT_EQUAL,
    "in": Operator.IN,
    "str-prefix": Operator.STARTS_WITH,
    "str-postfix": Operator.ENDS_WITH,
    "str-suffix": Operator.ENDS_WITH,
    "str-contains": Operator.CONTAINS,
    "ispresent": Operator.PRESENT,
}
PADRES_SPELLING = {
    Operator.STARTS_WITH: "str-prefix",
    Operator.ENDS_WITH: "str-suffix",
    Operator.CONTAINS: "str-contains",
    Operator.PRESENT: "isPresent",
}
DUMMY_BY_KIND = {Kind.NUMBER: "0", Kind.STRING: "''", Kind.BOOLEAN: "true"}

AN_OPERATOR = "an operator (= != < > <= >= in str-prefix str-suffix str-contains isPresent)"
A_READABLE_OPERATOR = (
    "an operator (= != < > <= >= in, starts with, ends with, contains, is present)"
)
A_VALUE = "a number, a quoted string, true or false"

ValueReader: TypeAlias = Callable[[Scanner], Value]

_BARE_WORD = re.compile(r"[^\s,;\[\]()'\"]+")
_SPELLING = re.compile(r"<=|>=|!=|[=<>]|[A-Za-z][A-Za-z-]*")
_WORD = re.compile(r"[A-Za-z]+")


def parse_predicates(text: str) -> tuple[Predicate, ...]:
    """Read a filter in either form: PADRES text starts with a bracket, readable text does not."""
    scanner = Scanner(_checked_text(text, "a filter"))
    read = _padres_predicate if scanner.at("[") else _readable_predicate
    predicates = [read(scanner)]
    while not scanner.at_end:
        if read is _padres_predicate:
            if scanner.take(";"):
                scanner.expect_end("the end of the filter after ';'")
                break
            scanner.expect(",", "',' and another [attribute,operator,value], or the end")
        else:
            scanner.expect_word("and", "'and' and another condition, or the end")
        if len(predicates) == PREDICATES_PER_FILTER_MAX:
            raise scanner.error(f"at most {PREDICATES_PER_FILTER_MAX} predicates in a filter")
        predicates.append(read(scanner))
    return tuple(predicates)


def parse_record(text: str) -> Record:
    """Read a record in PADRES form: `[attribute,value],[attribute,value],...`."""
    scanner = Scanner(_checked_text(text, "a record"))
    record: dict[str, Value] = {}
    while True:
        scanner.expect("[", "'[' and a pair [attribute,value]")
        start = scanner.mark()
        attribute = _attribute(scanner)
        if attribute in record:
            raise TextError(text, start, f"each attribute once, but {attribute} is repeated")
        scanner.expect(",", "',' and a value")
        record[attribute] = _bare_or_quoted(scanner)
        scanner.expect("]", "']'")
        if scanner.take(";") or scanner.at_end:
            scanner.expect_end("the end of the record")
            return check_record(record)
        scanner.expect(",", "',' and another [attribute,value], or the end")


def read_record(text: str) -> dict[str, Value]:
    """A record as a JSON object, or in the PADRES form, checked."""
    if not text.lstrip().startswith("{"):
        return check_record(parse_record(text.strip()))
    try:
        decoded = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise ContentError(f"not a record: {error}") from None
    return check_record(decoded)


def _checked_text(text: object, what: str) -> str:
    if not isinstance(text, str):
        raise ContentError(f"{what} is text; got {type(text).__name__}")
    if len(text) > TEXT_LENGTH_MAX:
        raise ContentError(
            f"{what} of {len(text)} characters; at most {TEXT_LENGTH_MAX} are allowed"
        )
    return text


def _padres_predicate(scanner: Scanner) -> Predicate:
    scanner.expect("[", "'[' and a predicate [attribute,operator,value]")
    attribute = _attribute(scanner)
    scanner.expect(",", "',' and an operator")
    start = scanner.mark()
    spelling = scanner.match(_SPELLING, AN_OPERATOR)
    operator = OPERATOR_BY_SPELLING.get(spelling.lower())
    if operator is None:
        raise TextError(scanner.text, start, AN_OPERATOR)
    if operator is Operator.PRESENT and scanner.take("]"):
        return Predicate(attribute, operator)
    scanner.expect(",", "',' and a value")
    start = scanner.mark()
    operand: Operand
    if scanner.take("*"):
        if operator not in (Operator.EQUAL, Operator.PRESENT):
            raise TextError(scanner.text, start, "a value: '*' goes with = and isPresent only")
        operator, operand = Operator.PRESENT, None
    elif operator is Operator.IN:
        operand = _values(scanner, _bare_or_quoted)
    elif operator is Operator.PRESENT:
        operand = kind_of(_bare_or_quoted(scanner))
    else:
        operand = _bare_or_quoted(scanner)
    predicate = _checked(scanner, start, attribute, operator, operand)
    scanner.expect("]", "']'")
    return predicate


def _readable_predicate(scanner: Scanner) -> Predicate:
    attribute = _attribute(scanner)
    operator, kind = _readable_operator(scanner)
    start = scanner.mark()
    operand: Operand
    if operator is Operator.PRESENT:
        operand = kind
    elif operator is Operator.IN:
        operand = _values(scanner, _quoted_or_literal)
    else:
        operand = _quoted_or_literal(scanner)
    return _checked(scanner, start, attribute, operator, operand)


def _readable_operator(scanner: Scanner) -> tuple[Operator, Kind | None]:
    start = scanner.mark()
    spelling = scanner.match(_SPELLING, A_READABLE_OPERATOR).lower()
    match spelling:
        case "is":
            return Operator.PRESENT, _present_kind(scanner)
        case "starts" | "ends":
            scanner.expect_word("with", f"'{spelling} with'")
            return (Operator.STARTS_WITH if spelling == "starts" else Operator.ENDS_WITH), None
        case "contains":
            return Operator.CONTAINS, None
    operator = OPERATOR_BY_SPELLING.get(spelling)
    if operator is None:
        raise TextError(scanner.text, start, A_READABLE_OPERATOR)
    return operator, None


def _present_kind(scanner: Scanner) -> Kind | None:
    expected = "'present', 'a number', 'a string' or 'a boolean' after 'is'"
    start = scanner.mark()
    word = scanner.match(_WORD, expected).lower()
    if word == "present":
        return None
    if word == "a":
        word = scanner.match(_WORD, expected).lower()
        if word in {kind.value for kind in Kind}:
            return Kind(word)
    raise TextError(scanner.text, start, expected)


def _attribute(scanner: Scanner) -> str:
    start = scanner.mark()
    name = scanner.match(ATTRIBUTE_PATTERN, "an attribute name")
    if len(name) > ATTRIBUTE_LENGTH_MAX:
        expected = f"an attribute name of at most {ATTRIBUTE_LENGTH_MAX} characters"
        raise TextError(scanner.text, start, f"{expected}, not {len(name)}")
    return name


def _values(scanner: Scanner, read: ValueReader) -> tuple[Value, ...]:
    scanner.expect("(", "'(' and a list of values")
    values = [read(scanner)]
    while not scanner.take(")"):
        scanner.expect(",", "',' and another value, or ')'")
        if len(values) == VALUES_PER_LIST_MAX:
            raise scanner.error(f"at most {VALUES_PER_LIST_MAX} values in a list")
        values.append(read(scanner))
    return tuple(values)


def _quoted_or_literal(scanner: Scanner) -> Value:
    """A value of the readable form."""
    start = scanner.mark()
    text = scanner.quoted()
    if text is not None:
        return _checked_length(scanner, start, text)
    value = _literal(scanner, start, scanner.match(_BARE_WORD, A_VALUE))
    if isinstance(value, str):
        raise TextError(scanner.text, start, f"{A_VALUE}; put a string in quotes")
    return value


def _bare_or_quoted(scanner: Scanner) -> Value:
    """A value of the PADRES form: a word that is neither a number nor true or false is a string."""
    start = scanner.mark()
    text = scanner.quoted()
    if text is None:
        value = _literal(scanner, start, scanner.match(_BARE_WORD, f"{A_VALUE}, or a word"))
        if not isinstance(value, str):
            return value
        text = value
    return _checked_length(scanner, start, text)


_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


def _literal(scanner: Scanner, start: int, word: str) -> Value:
    """The value of a bare word: a number, a boolean, or a string."""
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    if _NOT_FINITE.fullmatch(word):
        raise TextError(scanner.text, start, "a finite number, or quotes around a string")
    if not _NUMBER.fullmatch(word):
        return word
    try:
        # Python raises ValueError for integers of thousands of digits.
        number = int(word) if word.lstrip("+-").isdecimal() else float(word)
        check_value(number, of="number")
    except (ContentError, ValueError):
        raise TextError(scanner.text, start, "a finite number that fits into 64 bits") from None
    return number


def _checked_length(scanner: Scanner, start: int, text: str) -> str:
    if len(text) > STRING_LENGTH_MAX:
        expected = f"a string of at most {STRING_LENGTH_MAX} characters, not {len(text)}"
        raise TextError(scanner.text, start, expected)
    return text


def _checked(
    scanner: Scanner, start: int, attribute: str, operator: Operator, operand: Operand
) -> Predicate:
    if operator in ORDERINGS and isinstance(operand, str | bool):
        raise TextError(scanner.text, start, f"a number after {operator.value!r}")
    if operator in STRING_TESTS and not isinstance(operand, str):
        raise TextError(scanner.text, start, f"a string after {operator.value!r}")
    try:
        return Predicate(attribute, operator, operand)
    except ContentError as error:
        raise TextError(scanner.text, start, f"a valid predicate; {error}") from None


def format_value(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _format_values(values: Iterable[Value]) -> str:
    return "(" + ",".join(format_value(value) for value in values) + ")"


def format_predicate(predicate: Predicate) -> str:
    """One predicate in the readable form."""
    match predicate.operand:
        case None:
            return f"{predicate.attribute} is present"
        case Kind() as kind:
            return f"{predicate.attribute} is a {kind.value}"
        case tuple() as values:
            return f"{predicate.attribute} in {_format_values(values)}"
        case value:
            return f"{predicate.attribute} {predicate.operator.value} {format_value(value)}"


def format_readable(predicates: Sequence[Predicate]) -> str:
    return " and ".join(format_predicate(predicate) for predicate in predicates)


def format_padres(predicates: Sequence[Predicate]) -> str:
    return ",".join(_format_padres_predicate(predicate) for predicate in predicates)


def _format_padres_predicate(predicate: Predicate) -> str:
    operator = PADRES_SPELLING.get(predicate.operator, predicate.operator.value)
    match predicate.operand:
        case None:
            operand = "*"
        case Kind() as kind:
            operand = DUMMY_BY_KIND[kind]
        case tuple() as values:
            operand = _format_values(values)
        case value:
            operand = format_value(value)
            if isinstance(value, str):  # The thesis compares strings with words, not symbols.
                operator = {"=": "eq", "!=": "neq"}.get(operator, operator)
    return f"[{predicate.attribute},{operator},{operand}]"


def format_record(record: Record) -> str:
    """A record in PADRES form."""
    return ",".join(f"[{name},{format_value(value)}]" for name, value in record.items())
