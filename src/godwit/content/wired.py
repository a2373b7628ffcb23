"""What all messages have in common: their form on a wire, and short texts in them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec

ID_LENGTH_MAX = 256

ShortText: TypeAlias = Annotated[str, msgspec.Meta(max_length=ID_LENGTH_MAX)]


class Wired(msgspec.Struct, frozen=True, array_like=True):
    """A message: on a wire it is an array that starts with the tag of its kind."""
