"""The language in which datasets and feeds are made and dropped.

    CREATE DATASET name (column type, ...) [KEY column] [STATIC]
    CREATE FEED name FROM FILTER "filter" INTO dataset
    DROP DATASET name
    DROP FEED name

Words are not case-sensitive, nor are names; a name is shown as it was first written.  A semicolon
may end a statement.  Quotes within the filter are doubled, or the others are used around it.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from godwit.content.filters import Filter
from godwit.content.scanner import Scanner
from godwit.content.values import TEXT_LENGTH_MAX
from godwit.datacluster.dataset import Column, ColumnType, Dataset
from godwit.datacluster.feed import Feed
from godwit.errors import ContentError, TextError, UsageError

NAME_LENGTH_MAX = 64
COLUMNS_MAX = 256
#: What the dataset is called that keeps what another one refused.
QUARANTINE_SUFFIX = "_quarantine"
#: Names that would make a channel's query read otherwise than it was meant.
RESERVED = frozenset(
    [
        "all", "and", "as", "asc", "between", "by", "case", "cross", "desc", "distinct", "else",
        "end", "exists", "false", "from", "full", "group", "having", "in", "inner", "is", "join",
        "lateral", "left", "like", "limit", "natural", "new", "not", "null", "on", "or", "order",
        "outer", "right", "select", "semi", "then", "true", "union", "using", "values", "when",
        "where", "with",
    ]
)  # fmt: skip
_WORD = re.compile(r"\w+")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\b")


class CreateDataset(msgspec.Struct, frozen=True):
    dataset: Dataset


class CreateFeed(msgspec.Struct, frozen=True):
    feed: Feed


class DropDataset(msgspec.Struct, frozen=True):
    name: str


class DropFeed(msgspec.Struct, frozen=True):
    name: str


Statement: TypeAlias = CreateDataset | CreateFeed | DropDataset | DropFeed


def parse(text: str) -> Statement:
    """Read one statement; a TextError shows the place and says what belongs there."""
    if len(text) > TEXT_LENGTH_MAX:
        raise UsageError(f"a statement has at most {TEXT_LENGTH_MAX} characters, not {len(text)}")
    scanner = Scanner(text)
    statement = _statement(scanner)
    scanner.take(";")
    scanner.expect_end("the end of the statement")
    return statement


def _statement(scanner: Scanner) -> Statement:
    verb = _word_of(scanner, ("create", "drop"), "CREATE or DROP")
    kind = _word_of(scanner, ("dataset", "feed"), "DATASET or FEED")
    if verb == "create":
        return _dataset(scanner) if kind == "dataset" else _feed(scanner)
    name = _name(scanner, f"the name of a {kind}")
    return DropDataset(name) if kind == "dataset" else DropFeed(name)


def _dataset(scanner: Scanner) -> CreateDataset:
    place = scanner.mark()
    name = _name(scanner, "the name of the dataset")
    if name.lower().endswith(QUARANTINE_SUFFIX):
        raise TextError(scanner.text, place, f"a name that does not end in {QUARANTINE_SUFFIX}")
    columns = _columns(scanner)
    key = None
    if _take_word(scanner, "key"):
        place = scanner.mark()
        key = _name(scanner, "the column that is the key")
        if key not in {column.name for column in columns}:
            raise TextError(scanner.text, place, f"one of the columns: {_listed(columns)}")
    is_static = _take_word(scanner, "static")
    return CreateDataset(Dataset(name, tuple(columns), key, is_static))


def _columns(scanner: Scanner) -> list[Column]:
    scanner.expect("(", "( and the columns")
    columns: list[Column] = []
    while True:
        place = scanner.mark()
        name = _name(scanner, "the name of a column")
        if name.lower() in {column.name.lower() for column in columns}:
            raise TextError(scanner.text, place, f"another name: {name} is a column already")
        if len(columns) == COLUMNS_MAX:
            raise TextError(scanner.text, place, f"at most {COLUMNS_MAX} columns")
        types = tuple(kind.value.lower() for kind in ColumnType)
        found = _word_of(scanner, types, f"a type: {', '.join(ColumnType)}")
        columns.append(Column(name, ColumnType(found.upper())))
        if scanner.take(")"):
            return columns
        scanner.expect(",", ", or )")


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


def _name(scanner: Scanner, expected: str) -> str:
    place = scanner.mark()
    name = scanner.match(_NAME, f"{expected}: a letter, then letters, digits or _")
    if len(name) > NAME_LENGTH_MAX:
        raise TextError(scanner.text, place, f"a name of at most {NAME_LENGTH_MAX} characters")
    if name.lower() in RESERVED:
        raise TextError(scanner.text, place, f"{expected}; {name.upper()} is a word of the queries")
    return name


def _word_of(scanner: Scanner, words: tuple[str, ...], expected: str) -> str:
    place = scanner.mark()
    word = scanner.match(_WORD, expected).lower()
    if word not in words:
        raise TextError(scanner.text, place, expected)
    return word


def _take_word(scanner: Scanner, word: str) -> bool:
    start = scanner.mark() - 1
    found = _WORD.match(scanner.text, start)
    if found is None or found.group().lower() != word:
        return False
    return scanner.take(found.group())


def _listed(columns: list[Column]) -> str:
    return ", ".join(column.name for column in columns)
