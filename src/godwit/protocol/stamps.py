"""The stamp that the first broker writes at the end of a publication.

    all fields follow | publisher ... ttl_hops | is_control, accepted_s, size_bytes, marks
    1 byte              as the client wrote it   the stamp

Godwit's clients write every field, and an empty stamp, which the broker replaces without encoding
anything else.  Other clients may omit fields, encode them differently, or forge a stamp: their
publications are encoded again on receipt.
"""

from __future__ import annotations

from struct import Struct as Packing

import msgspec

from godwit.content.messages import NO_MARKS, Mark, Publication
from godwit.errors import PeerError
from godwit.protocol.frames import FRAME_BYTES_MAX, HEADER, encode_body

# MessagePack: an array of the tag and ten fields, booleans, a float of eight bytes, an integer up
# to 127 as a byte, and an empty array as a byte.
ALL_FIELDS = 0x9B
FALSE = 0xC2
FLOAT = 0xCB
ALL_BUT_MARKS = Packing(">BBdB")


def stamp_of(accepted_s: float, marks: tuple[Mark, ...] = NO_MARKS) -> bytes:
    """The stamp of a publication that is not a control message."""
    return ALL_BUT_MARKS.pack(FALSE, FLOAT, accepted_s, 0) + msgspec.msgpack.encode(marks)


UNSTAMPED = stamp_of(0.0)
UNSTAMPED_END = -len(UNSTAMPED)


def is_unstamped(body: bytes) -> bool:
    """Whether the body is as Godwit's clients write it."""
    return body[0] == ALL_FIELDS and body.endswith(UNSTAMPED)


def unstamped(publication: Publication) -> tuple[Publication, bytes]:
    """A publication of any client, encoded as Godwit's clients do."""
    plain = msgspec.structs.replace(
        publication, is_control=False, accepted_s=0.0, size_bytes=0, marks=NO_MARKS
    )
    body = encode_body(plain)
    if len(body) > FRAME_BYTES_MAX:  # A float of four bytes now takes eight.
        raise PeerError(f"a publication of {len(body)} bytes; at most {FRAME_BYTES_MAX}")
    return plain, body


def frame_of(publication: Publication, hops: int, body: bytes, stamp: bytes | None) -> bytes:
    """The frame of a publication that was received as `body`; `stamp` replaces the empty one."""
    if stamp is not None:
        if publication.marks:
            stamp = stamp_of(publication.accepted_s, publication.marks)
        body = body[:UNSTAMPED_END] + stamp
    return HEADER.pack(len(body), hops) + body
