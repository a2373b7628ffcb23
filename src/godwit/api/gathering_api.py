"""HTTP operations of a broker with CBC: gather the profiles of the whole network, for CROC.

    POST /gatherings       {"silence_s": 10}     -> {"id": "B1-3f2a..."}
    GET  /gatherings/{id}  ?received=0           -> pages, base64 of what cbc_pages.py reads
    POST /gatherings/end   {"id": "B1-3f2a..."}  -> {}

CROC begins a gathering at any broker, fetches pages until `is_complete`, and ends it.  Pages have
numbers from 0; `received` says how many have arrived, so a fetch may be repeated.  If nothing is
fetched for three times its `silence_s`, a gathering ends by itself.  A broker without `[profiling]`
in its network file answers 404.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from godwit.http.operations import Nothing, Operation
from godwit.policies.allocation.cbc_gathering import SILENCE_S, SILENCE_S_MAX, SILENCE_S_MIN


class BeginGathering(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    silence_s: Annotated[float, msgspec.Meta(ge=SILENCE_S_MIN, le=SILENCE_S_MAX)] = SILENCE_S
    """A broker that says nothing for so long is missing."""


class GatheringBegun(msgspec.Struct, frozen=True):
    id: str


class FetchPages(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    id: str
    received: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Pages that have arrived; they are not sent again."""


class FetchedPages(msgspec.Struct, frozen=True, kw_only=True):
    first: int
    """The number of the first of these pages."""

    pages: tuple[bytes, ...]
    is_complete: bool
    """All brokers have answered or are missing, and there are no more pages."""


class EndGathering(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    id: str


BEGIN_GATHERING = Operation(
    "POST",
    "/gatherings",
    BeginGathering,
    GatheringBegun,
    "Ask every broker of the network for the profiles of its clients.",
    is_guarded=True,
)
FETCH_PAGES = Operation(
    "GET",
    "/gatherings/{id}",
    FetchPages,
    FetchedPages,
    "The pages of a gathering that have arrived, without those before `received`.",
    is_guarded=True,
)
END_GATHERING = Operation(
    "POST",
    "/gatherings/end",
    EndGathering,
    Nothing,
    "End a gathering, complete or not.",
    is_guarded=True,
)
