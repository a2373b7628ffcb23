"""Settings: read from TOML, changed by options, checked by their types."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from godwit.errors import UsageError

S = TypeVar("S", bound=msgspec.Struct)


def read(path: Path, kind: type[S]) -> S:
    """The settings of a file; what is wrong with it is said with its name."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UsageError) as error:
        raise UsageError(f"{path}: {error}") from None


def checked(settings: S) -> S:
    """`settings` again, if every rule holds for them."""
    return changed(settings)


def changed(settings: S, **given: object) -> S:
    """`settings` with what was given and is not None, if every rule holds for that."""
    fields = msgspec.to_builtins(settings) | {k: v for k, v in given.items() if v is not None}
    try:
        return msgspec.convert(fields, type(settings))
    except msgspec.ValidationError as error:
        raise UsageError(str(error)) from None
