"""A feed: publications that match a filter become records of a dataset."""

from __future__ import annotations

import msgspec


class Feed(msgspec.Struct, frozen=True):
    name: str
    filter: str
    """Text in the filter language."""

    dataset: str
