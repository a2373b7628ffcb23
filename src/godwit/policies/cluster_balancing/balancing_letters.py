"""What brokers of a cluster write to each other about their load.

Paper    Cluster-based pub/sub (document 003), section 3.3.
Words    load balancing request -> LoadRequest; ACCEPT -> Accept.

    overloaded                       mate
        |-- LoadRequest --------------->|
        |<------------- Accept(amount) -|   0 if it cannot help; it reserves the amount
        |-- Used(amount) ------------->|   what of it is used; the rest is free again
        |<------------------- GiveBack -|   later, when the helper is overloaded itself

Departs  Used and GiveBack are ours: without them a helper promises the same amount to several, and
         keeps work that it cannot do any more.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class LoadRequest(msgspec.Struct, frozen=True, array_like=True, tag="LBR"):
    """Can you take some of my load?"""

    number: int


class Accept(msgspec.Struct, frozen=True, array_like=True, tag="ACCEPT"):
    """How much load the sender can take, in messages in a time unit, and how much it has."""

    number: int
    amount: float
    load: float


class Used(msgspec.Struct, frozen=True, array_like=True, tag="USED"):
    """How much of what was accepted is used."""

    amount: float


class GiveBack(msgspec.Struct, frozen=True, array_like=True, tag="GIVEBACK"):
    """Do this yourself again: ring work of these publishers, and cluster work of these."""

    rings: tuple[str, ...]
    clusters: tuple[str, ...]


BalancingLetter: TypeAlias = LoadRequest | Accept | Used | GiveBack

_DECODER: msgspec.msgpack.Decoder[BalancingLetter] = msgspec.msgpack.Decoder(BalancingLetter)


def encoded(letter: BalancingLetter) -> bytes:
    return msgspec.msgpack.encode(letter)


def decoded(body: bytes) -> BalancingLetter:
    return _DECODER.decode(body)
