"""The messages of POP and GRAPE between neighbouring brokers.

Words    TRM -> TraceResult; RRM -> RelocationRequest; RAM -> RelocationAnswer;
         TIR -> TraceInformationRequest; TIA -> TraceInformationAnswer.
Departs  The thesis sends these as publications to one broker; here they are letters over one link.
         They are forwarded hop by hop, keep their order with publications (a TIR must not overtake
         the traced publications), and need no entries in routing tables.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from godwit.policies.placement.selection import Entry


class BrokerAddress(msgspec.Struct, frozen=True, array_like=True):
    """A broker and the address that clients use."""

    broker: str
    address: str


class TraceResult(msgspec.Struct, frozen=True, array_like=True, tag="TRM"):
    """TRM: how many times a traced publication was delivered at the sender and downstream.

    It names the publication (E9): results of different ones may arrive in another order.
    """

    incarnation: str
    """Of the publisher (`incarnation_of`): the next one uses the same numbers again."""

    sequence: int
    deliveries: int


class RelocationRequest(msgspec.Struct, frozen=True, array_like=True, tag="RRM"):
    """RRM: the publisher should move at least to the receiver; find the closest broker."""

    publisher: str
    elsewhere: float
    """Deliveries for each publication on the sender's side of the link."""

    here: float
    """Deliveries for each publication on the receiver's side, by the sender's table."""

    saved: float
    """Link crossings saved for each publication, over all deliveries, by a move to the receiver."""

    path: tuple[BrokerAddress, ...]
    """The brokers up to here, the sender first."""


class RelocationAnswer(msgspec.Struct, frozen=True, array_like=True, tag="RAM"):
    """RAM: the first broker on the path is the closest.  Goes back along the path."""

    publisher: str
    saved: float
    path: tuple[BrokerAddress, ...]


class TraceInformationRequest(msgspec.Struct, frozen=True, array_like=True, tag="TIR"):
    """TIR: a trace session is over; asks for its results."""

    publisher: str
    trace: int


class TraceInformationAnswer(msgspec.Struct, frozen=True, array_like=True, tag="TIA"):
    """TIA: the results of a trace session at the sender, whose entry is first, and downstream."""

    publisher: str
    trace: int
    held_s: float
    """How long the request waited for the answers from downstream."""

    entries: tuple[Entry, ...]


PopLetter: TypeAlias = TraceResult | RelocationRequest | RelocationAnswer
GrapeLetter: TypeAlias = TraceInformationRequest | TraceInformationAnswer

write = msgspec.msgpack.Encoder().encode
_read_pop = msgspec.msgpack.Decoder(PopLetter)
_read_grape = msgspec.msgpack.Decoder(GrapeLetter)


def read_pop(body: bytes) -> PopLetter | None:
    """None if the body is not a message of POP, perhaps of another version."""
    try:
        letter: PopLetter = _read_pop.decode(body)
    except msgspec.DecodeError:
        return None
    return letter


def read_grape(body: bytes) -> GrapeLetter | None:
    try:
        letter: GrapeLetter = _read_grape.decode(body)
    except msgspec.DecodeError:
        return None
    return letter
