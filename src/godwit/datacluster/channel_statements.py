"""The language in which channels are made and dropped.

    CREATE CHANNEL name(parameter type, ...) EVERY n SECONDS|MINUTES AS SELECT ...
    CREATE CHANNEL name(parameter type, ...) CONTINUOUS AS SELECT ...
    DROP CHANNEL name

Words are not case-sensitive, nor are names.  What the SELECT may say is the business of
`channel_query`; here it is text.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from godwit.content.scanner import Scanner
from godwit.datacluster.channel import Channel
from godwit.datacluster.dataset import Column, ColumnType
from godwit.errors import TextError, UsageError

NAME_LENGTH_MAX = 64
PARAMETERS_MAX = 32
TEXT_LENGTH_MAX = 20_000
EVERY_S_MAX = 86_400.0
UNITS_S = {"second": 1.0, "seconds": 1.0, "minute": 60.0, "minutes": 60.0}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\b")
_WORD = re.compile(r"[A-Za-z]+\b")
_NUMBER = re.compile(r"\d{1,5}(\.\d{1,3})?\b")
_REST = re.compile(r".+", re.DOTALL)


class CreateChannel(msgspec.Struct, frozen=True):
    channel: Channel


class DropChannel(msgspec.Struct, frozen=True):
    name: str


ChannelStatement: TypeAlias = CreateChannel | DropChannel


def parse_channel_statement(text: str) -> ChannelStatement:
    """Read one statement; a TextError shows the place and says what belongs there."""
    if len(text) > TEXT_LENGTH_MAX:
        raise UsageError(f"a statement has at most {TEXT_LENGTH_MAX} characters, not {len(text)}")
    scanner = Scanner(text)
    verb = _word(scanner, ("create", "drop"), "CREATE or DROP")
    scanner.expect_word("channel", "CHANNEL")
    name = _name(scanner, "the name of the channel")
    if verb == "drop":
        scanner.take(";")
        scanner.expect_end("the end of the statement")
        return DropChannel(name)
    parameters = _parameters(scanner)
    every_s = _every_s(scanner)
    scanner.expect_word("as", "AS and the query")
    query = scanner.match(_REST, "SELECT ...").rstrip().removesuffix(";").rstrip()
    return CreateChannel(Channel(name, parameters, every_s, query))


def _parameters(scanner: Scanner) -> tuple[Column, ...]:
    scanner.expect("(", "( and the parameters")
    parameters: list[Column] = []
    if scanner.take(")"):
        return ()
    while True:
        place = scanner.mark()
        name = _name(scanner, "the name of a parameter")
        if name.lower() in {known.name.lower() for known in parameters}:
            raise TextError(scanner.text, place, f"another name: {name} is a parameter already")
        if len(parameters) == PARAMETERS_MAX:
            raise TextError(scanner.text, place, f"at most {PARAMETERS_MAX} parameters")
        types = tuple(type.value.lower() for type in ColumnType)
        type = _word(scanner, types, f"a type: {', '.join(ColumnType)}")
        parameters.append(Column(name, ColumnType(type.upper())))
        if scanner.take(")"):
            return tuple(parameters)
        scanner.expect(",", ", or )")


def _every_s(scanner: Scanner) -> float | None:
    if _word(scanner, ("every", "continuous"), "EVERY or CONTINUOUS") == "continuous":
        return None
    place = scanner.mark()
    number = float(scanner.match(_NUMBER, "a number of seconds or minutes"))
    every_s = number * UNITS_S[_word(scanner, tuple(UNITS_S), "SECONDS or MINUTES")]
    if not 0 < every_s <= EVERY_S_MAX:
        raise TextError(scanner.text, place, "a period of more than nothing and at most a day")
    return every_s


def _name(scanner: Scanner, expected: str) -> str:
    place = scanner.mark()
    name = scanner.match(_NAME, f"{expected}: a letter, then letters, digits or _")
    if len(name) > NAME_LENGTH_MAX:
        raise TextError(scanner.text, place, f"a name of at most {NAME_LENGTH_MAX} characters")
    return name


def _word(scanner: Scanner, words: tuple[str, ...], expected: str) -> str:
    place = scanner.mark()
    word = scanner.match(_WORD, expected).lower()
    if word not in words:
        raise TextError(scanner.text, place, expected)
    return word
