"""The parser: the text of one statement becomes a `Statement`; statements.py has the grammar.

Keywords and names are not case-sensitive; a name is shown as it was first written.  Comments count
as blanks.  A semicolon may end a statement.  A filter is in single or double quotes; the same quote
within it is doubled.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from godwit.content.filters import Filter
from godwit.content.scanner import Scanner
from godwit.content.values import TEXT_LENGTH_MAX
from godwit.datacluster.ddl.statements import (
    CreateChannel,
    CreateDataset,
    CreateFeed,
    DropChannel,
    DropDataset,
    DropFeed,
    Statement,
)
from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.dataset import (
    NAME_LENGTH_MAX,
    QUARANTINE_SUFFIX,
    Column,
    ColumnType,
    Dataset,
)
from godwit.datacluster.model.feed import Feed
from godwit.errors import ContentError, TextError, UsageError

COLUMNS_MAX = 256
PARAMETERS_MAX = 32
#: Limit of a statement about a channel: the time to check a query grows with it.
CHANNEL_TEXT_LENGTH_MAX = 20_000
EVERY_S_MAX = 86_400.0
UNITS_S = {"second": 1.0, "seconds": 1.0, "minute": 60.0, "minutes": 60.0}
#: Names that would change the meaning of a query that uses them.
RESERVED = frozenset(
    [
        "all", "and", "as", "asc", "between", "by", "case", "cross", "desc", "distinct", "else",
        "end", "exists", "false", "from", "full", "group", "having", "in", "inner", "is", "join",
        "lateral", "left", "like", "limit", "natural", "new", "not", "null", "on", "or", "order",
        "outer", "right", "select", "semi", "then", "true", "union", "using", "values", "when",
        "where", "with",
    ]
)  # fmt: skip
_BLANK = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\b")
_NUMBER = re.compile(r"\d{1,5}(\.\d{1,3})?\b")
_TYPES = tuple(type.value.lower() for type in ColumnType)
_REST = re.compile(r".+", re.DOTALL)


def parse(text: str) -> Statement:
    """Read one statement; a TextError names the column and what is expected there."""
    _check_length(text, TEXT_LENGTH_MAX)
    scanner = _StatementScanner(text)
    verb = _keyword(scanner, ("create", "drop"), "CREATE or DROP")
    kind = _keyword(scanner, tuple(_CREATE), "DATASET, FEED or CHANNEL")
    if kind == "channel":
        _check_length(text, CHANNEL_TEXT_LENGTH_MAX)
    if verb == "create":
        statement = _CREATE[kind](scanner)
    else:
        statement = _DROP[kind](_name(scanner, f"the name of the {kind}"))
    scanner.take(";")
    scanner.expect_end("the end of the statement")
    return statement


class _StatementScanner(Scanner):
    """Skips comments, too."""

    def mark(self) -> int:
        blank = _BLANK.match(self.text, self._position)
        assert blank, "the pattern matches the empty string"
        self._position = blank.end()
        return self._position + 1


def _check_length(text: str, length_max: int) -> None:
    if len(text) > length_max:
        raise UsageError(f"a statement has at most {length_max} characters, not {len(text)}")


# -- what follows CREATE --------------------------------------------------------------------


def _dataset(scanner: Scanner) -> CreateDataset:
    place = scanner.mark()
    name = _name(scanner, "the name of the dataset")
    if name.lower().endswith(QUARANTINE_SUFFIX):
        raise TextError(scanner.text, place, f"a name that does not end in {QUARANTINE_SUFFIX}")
    scanner.expect("(", "( and the columns")
    columns = _columns(scanner, "column", COLUMNS_MAX)
    key = _key(scanner, columns) if _take_word(scanner, "key") else None
    is_static = _take_word(scanner, "static")
    return CreateDataset(Dataset(name, columns, key, is_static))


def _key(scanner: Scanner, columns: tuple[Column, ...]) -> str:
    place = scanner.mark()
    name = _name(scanner, "the column that is the key")
    spelled = {column.name.lower(): column.name for column in columns}
    if name.lower() not in spelled:
        raise TextError(scanner.text, place, f"one of the columns: {', '.join(spelled.values())}")
    return spelled[name.lower()]


def _feed(scanner: Scanner) -> CreateFeed:
    name = _name(scanner, "the name of the feed")
    scanner.expect_word("from", "FROM FILTER")
    scanner.expect_word("filter", "FILTER")
    place = scanner.mark()
    filter = scanner.quoted()
    if filter is None:
        raise scanner.error("the filter, in quotes")
    try:
        Filter.parse(filter)
    except ContentError as error:
        raise TextError(scanner.text, place, f"a filter, but in it: {error}") from None
    scanner.expect_word("into", "INTO and the name of a dataset")
    return CreateFeed(Feed(name, filter, _name(scanner, "the name of a dataset")))


def _channel(scanner: Scanner) -> CreateChannel:
    name = _name(scanner, "the name of the channel")
    scanner.expect("(", "( and the parameters")
    has_parameters = not scanner.take(")")
    parameters = _columns(scanner, "parameter", PARAMETERS_MAX) if has_parameters else ()
    every_s = _every_s(scanner)
    scanner.expect_word("as", "AS and the query")
    query = scanner.match(_REST, "SELECT ...").rstrip().removesuffix(";").rstrip()
    return CreateChannel(Channel(name, parameters, every_s, query))


def _every_s(scanner: Scanner) -> float | None:
    if _keyword(scanner, ("every", "continuous"), "EVERY or CONTINUOUS") == "continuous":
        return None
    place = scanner.mark()
    number = float(scanner.match(_NUMBER, "a number of seconds or minutes"))
    every_s = number * UNITS_S[_keyword(scanner, tuple(UNITS_S), "SECONDS or MINUTES")]
    if not 0 < every_s <= EVERY_S_MAX:
        raise TextError(scanner.text, place, "a period above zero, of at most a day")
    return every_s


_CREATE: dict[str, Callable[[Scanner], Statement]] = {
    "dataset": _dataset,
    "feed": _feed,
    "channel": _channel,
}
_DROP: dict[str, Callable[[str], Statement]] = {
    "dataset": DropDataset,
    "feed": DropFeed,
    "channel": DropChannel,
}

# -- parts of statements -----------------------------------------------------------------------


def _columns(scanner: Scanner, kind: str, count_max: int) -> tuple[Column, ...]:
    """`name type, ...` and the closing parenthesis."""
    columns: list[Column] = []
    while True:
        place = scanner.mark()
        name = _name(scanner, f"the name of a {kind}")
        if name.lower() in {column.name.lower() for column in columns}:
            raise TextError(scanner.text, place, f"another name: {name} is a {kind} already")
        if len(columns) == count_max:
            raise TextError(scanner.text, place, f"at most {count_max} {kind}s")
        found = _keyword(scanner, _TYPES, f"a type: {', '.join(ColumnType)}")
        columns.append(Column(name, ColumnType(found.upper())))
        if scanner.take(")"):
            return tuple(columns)
        scanner.expect(",", ", or )")


def _name(scanner: Scanner, expected: str) -> str:
    place = scanner.mark()
    name = scanner.match(_NAME, f"{expected}: a letter, then letters, digits or _")
    if len(name) > NAME_LENGTH_MAX:
        raise TextError(scanner.text, place, f"a name of at most {NAME_LENGTH_MAX} characters")
    if name.lower() in RESERVED:
        raise TextError(scanner.text, place, f"{expected}; {name.upper()} is a reserved word")
    return name


def _keyword(scanner: Scanner, words: tuple[str, ...], expected: str) -> str:
    place = scanner.mark()
    word = scanner.match(_WORD, expected).lower()
    if word not in words:
        raise TextError(scanner.text, place, expected)
    return word


def _take_word(scanner: Scanner, word: str) -> bool:
    """Step over the word if it comes next."""
    found = _WORD.match(scanner.text, scanner.mark() - 1)
    return found is not None and found.group().lower() == word and scanner.take(found.group())
