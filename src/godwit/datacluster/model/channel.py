"""A channel: a query with parameters.  Subscribers give arguments for them."""

from __future__ import annotations

import msgspec

from godwit.datacluster.model.dataset import Column


class Channel(msgspec.Struct, frozen=True):
    name: str
    parameters: tuple[Column, ...]
    every_s: float | None
    """The period of its executions; None: after every ingest batch."""

    query: str
    """The text of the user, from SELECT on."""

    @property
    def is_continuous(self) -> bool:
        return self.every_s is None
