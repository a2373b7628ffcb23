"""Settings: read from TOML, changed by options, checked against their types."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TypeVar

import msgspec
import msgspec.inspect

from godwit.errors import UsageError

#: How msgspec shows what a name must match (protocol/frames.py).
NAME_PATTERN = r"^[\w.$:@+-]+\Z"

S = TypeVar("S", bound=msgspec.Struct)


def read(path: Path, kind: type[S]) -> S:
    """The settings in a file; errors name the file."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UsageError) as error:
        raise UsageError(f"{path}: {error}{_hint(str(error), kind)}") from None


def checked(settings: S) -> S:
    """`settings`, if they obey every rule of their type; else UsageError."""
    return changed(settings)


def changed(settings: S, **given: object) -> S:
    """`settings` with the given values that are not None, checked."""
    fields = msgspec.to_builtins(settings) | {k: v for k, v in given.items() if v is not None}
    try:
        return msgspec.convert(fields, type(settings))
    except msgspec.ValidationError as error:
        raise UsageError(f"{error}{_hint(str(error), type(settings))}") from None


def _hint(error: str, kind: type[msgspec.Struct]) -> str:
    """What to do about an error of msgspec, or "" if it says that itself."""
    if NAME_PATTERN in error.replace(r"\\", "\\"):
        return "; use letters, digits and any of . _ $ : @ + -"
    unknown = re.search("unknown field `([^`]*)`", error)
    if unknown is None:
        return ""
    place = re.search(r"at `\$\.?([^`]*)`", error)
    keys = _keys(msgspec.inspect.type_info(kind), place[1] if place else "")
    near = difflib.get_close_matches(unknown[1], keys, n=1)
    if near:
        return f"; did you mean `{near[0]}`?"
    return f"; the keys are {', '.join(keys)}" if keys else ""


def _keys(kind: msgspec.inspect.Type, place: str) -> list[str]:
    """The keys of the table at this place, `broker[0]` for example, in settings of this type."""
    for step in re.findall(r"[^.\[\]]+|\[[^\]]*\]", place):
        options = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
        for option in options:
            if isinstance(option, msgspec.inspect.ListType) and step.startswith("["):
                kind = option.item_type
                break
            if isinstance(option, msgspec.inspect.StructType):
                found = [each.type for each in option.fields if each.encode_name == step]
                if found:
                    kind = found[0]
                    break
        else:
            return []
    options = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    structs = [option for option in options if isinstance(option, msgspec.inspect.StructType)]
    return [each.encode_name for struct in structs for each in struct.fields]
