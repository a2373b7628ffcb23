"""The messages of a gathering between neighbouring brokers.

Paper    Cheung, thesis 6.1.1.
Words    BIR -> BrokerInformationRequest; BIA -> BrokerInformationAnswer, one page of it.
Departs  1. The thesis publishes them.  Here they are letters over one link: the first broker is not
            known to all others beforehand, answers are aggregated hop by hop, and no table needs
            an entry for them (docs/decisions/0025-gathering.md).
         2. An answer comes in pages, as many as the receiver has asked for: a broker with 10,000
            subscriptions has megabytes to say, and links must stay free for publications.
         3. Both sides say now and then that they are there: who is silent for too long has failed,
            or has no CBC.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class BrokerInformationRequest(msgspec.Struct, frozen=True, array_like=True, tag="BIR"):
    """BIR: answer, and ask all others that you know."""

    gathering: str
    silence_s: float
    """A broker that sends nothing for so long is missing."""


class BrokerInformationAnswer(msgspec.Struct, frozen=True, array_like=True, tag="BIA"):
    """BIA: a page of the sender or of a broker behind it."""

    gathering: str
    page: bytes
    """An encoded CbcPage; empty in the last answer."""

    is_last: bool = False
    """The sender and all brokers behind it that answer have answered."""


class MorePages(msgspec.Struct, frozen=True, array_like=True, tag="MORE"):
    """The sender can take so many more pages."""

    gathering: str
    pages: int


class StillThere(msgspec.Struct, frozen=True, array_like=True, tag="HERE"):
    """The sender takes part, and waits for others."""

    gathering: str


class GatheringEnd(msgspec.Struct, frozen=True, array_like=True, tag="END"):
    """Stop: the first broker wants no more answers."""

    gathering: str


CbcLetter: TypeAlias = (
    BrokerInformationRequest | BrokerInformationAnswer | MorePages | StillThere | GatheringEnd
)

write_letter = msgspec.msgpack.Encoder().encode
_reader = msgspec.msgpack.Decoder(CbcLetter)


def read_letter(body: bytes) -> CbcLetter | None:
    """None if the body is not a message of CBC, perhaps of another version."""
    try:
        letter: CbcLetter = _reader.decode(body)
    except msgspec.DecodeError:
        return None
    return letter
