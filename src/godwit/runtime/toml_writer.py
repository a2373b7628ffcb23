"""Writes TOML: what msgspec.toml reads back is equal.

Python reads TOML and does not write it.  Values are text, numbers, booleans, lists of values and
tables of them; a table within a list of tables, or within another value, is written inline.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(table: Mapping[str, object]) -> str:
    """A document with this table: its values, then the tables in it."""
    return "\n".join(_lines(table, "")).lstrip("\n") + "\n"


def _lines(table: Mapping[str, object], prefix: str) -> Iterator[str]:
    for key, value in table.items():
        if not isinstance(value, Mapping) and not _is_list_of_tables(value):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        name = f"{prefix}{_key(key)}"
        if isinstance(value, Mapping):
            if not value or not all(isinstance(each, Mapping) for each in value.values()):
                yield from ("", f"[{name}]")
            yield from _lines(value, f"{name}.")
        elif isinstance(value, list) and _is_list_of_tables(value):
            for each in value:
                yield from ("", f"[[{name}]]")
                yield from (f"{_key(inner)} = {_value(one)}" for inner, one in each.items())


def _is_list_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    raise TypeError(f"TOML has no {type(value).__name__}")


def _text(text: str) -> str:
    """As JSON writes it, which TOML reads, but for one character."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
