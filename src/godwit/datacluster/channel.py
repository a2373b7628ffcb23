"""What a channel is: a query with parameters that many subscribe to, each with own arguments."""

from __future__ import annotations

import msgspec

from godwit.datacluster.dataset import Column


class Channel(msgspec.Struct, frozen=True):
    name: str
    parameters: tuple[Column, ...]
    every_s: float | None
    """How often it is executed; None if after every ingest batch."""

    query: str
    """As it was written, from SELECT on."""

    @property
    def is_continuous(self) -> bool:
        return self.every_s is None
