"""Settings: read from TOML, changed by options, checked against their types."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from godwit.errors import UsageError

S = TypeVar("S", bound=msgspec.Struct)


def read(path: Path, kind: type[S]) -> S:
    """The settings in a file; errors name the file."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UsageError) as error:
        raise UsageError(f"{path}: {error}") from None


def checked(settings: S) -> S:
    """`settings`, if they obey every rule of their type; else UsageError."""
    return changed(settings)


def changed(settings: S, **given: object) -> S:
    """`settings` with the given values that are not None, checked."""
    fields = msgspec.to_builtins(settings) | {k: v for k, v in given.items() if v is not None}
    try:
        return msgspec.convert(fields, type(settings))
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from None
