"""What the modules of neighbouring brokers write to each other about where publishers should be.

Words    TRM -> Delivered; RRM -> WhoIsCloser; RAM -> Closest; TIR -> WhatDelivered;
         TIA -> AllDelivered.
Departs  The thesis sends these as publications to one broker; here they are letters over one link.
         They are passed on hop by hop, keep their place among publications (a TIR must not overtake
         what was traced), and take no room in routing tables.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from godwit.placement.selection import Entry


class Place(msgspec.Struct, frozen=True, array_like=True):
    """A broker, and where clients reach it."""

    broker: str
    address: str


class Delivered(msgspec.Struct, frozen=True, array_like=True, tag="TRM"):
    """A traced publication was delivered so many times here and downstream.

    It names the publication (E9): answers to different ones may come in another order.
    """

    publisher: str
    sequence: int
    deliveries: int


class WhoIsCloser(msgspec.Struct, frozen=True, array_like=True, tag="RRM"):
    """A publisher should come at least as far as here: who is closest to its subscribers?"""

    publisher: str
    elsewhere: float
    """Deliveries for each publication on the sender's side of the link."""

    here: float
    """... and, as the sender knows it, on this side."""

    saved: float
    """Links that deliveries of a publication are spared, all together, if it comes here."""

    path: tuple[Place, ...]
    """The way here, the sender first."""


class Closest(msgspec.Struct, frozen=True, array_like=True, tag="RAM"):
    """The first on the path is the closest.  Goes back along it."""

    publisher: str
    saved: float
    path: tuple[Place, ...]


class WhatDelivered(msgspec.Struct, frozen=True, array_like=True, tag="TIR"):
    """A trace session is over: what came of it?"""

    publisher: str
    trace: int


class AllDelivered(msgspec.Struct, frozen=True, array_like=True, tag="TIA"):
    """What came of a trace session, at this broker, which comes first, and downstream."""

    publisher: str
    trace: int
    held_s: float
    """How long the question was kept for the answers from downstream."""

    entries: tuple[Entry, ...]


OfPop: TypeAlias = Delivered | WhoIsCloser | Closest
OfGrape: TypeAlias = WhatDelivered | AllDelivered

write = msgspec.msgpack.Encoder().encode
_read_pop = msgspec.msgpack.Decoder(OfPop)
_read_grape = msgspec.msgpack.Decoder(OfGrape)


def read_pop(body: bytes) -> OfPop | None:
    """None if it is nothing that POP writes: of another version, perhaps."""
    try:
        letter: OfPop = _read_pop.decode(body)
    except msgspec.DecodeError:
        return None
    return letter


def read_grape(body: bytes) -> OfGrape | None:
    try:
        letter: OfGrape = _read_grape.decode(body)
    except msgspec.DecodeError:
        return None
    return letter
