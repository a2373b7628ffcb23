"""The stamp that the first broker puts at the end of a publication.

    all fields follow | publisher ... ttl_hops | is_control, accepted_s, size_bytes, trace
    1 byte              as the client wrote it   the stamp

Our clients write every field, and a stamp that says nothing.  The broker replaces it, and encodes
nothing else.  Other clients may write less, or in other ways, or pretend to have been stamped: what
they wrote is encoded anew when it comes in.
"""

from __future__ import annotations

from struct import Struct as Packing

import msgspec

from godwit.content.messages import Publication
from godwit.errors import PeerError
from godwit.wire.frames import FRAME_BYTES_MAX, encode_body, framed

# What MessagePack writes: an array of the tag and ten fields, booleans, a float of eight bytes,
# and an integer up to 127 as a byte.
ALL_FIELDS = 0x9B
FALSE = 0xC2
FLOAT = 0xCB
ALL_BUT_TRACE = Packing(">BBdB")


def stamp_of(accepted_s: float, trace: int = 0) -> bytes:
    """The stamp of publications that are not control."""
    return ALL_BUT_TRACE.pack(FALSE, FLOAT, accepted_s, 0) + msgspec.msgpack.encode(trace)


UNSTAMPED = stamp_of(0.0)
UNSTAMPED_END = -len(UNSTAMPED)


def is_unstamped(body: bytes) -> bool:
    """Is this how our clients write a publication?"""
    return body[0] == ALL_FIELDS and body.endswith(UNSTAMPED)


def unstamped(publication: Publication) -> tuple[Publication, bytes]:
    """What any client wrote, as ours would have written it."""
    plain = msgspec.structs.replace(
        publication, is_control=False, accepted_s=0.0, size_bytes=0, trace=0
    )
    body = encode_body(plain)
    if len(body) > FRAME_BYTES_MAX:  # A float of four bytes takes eight now.
        raise PeerError(f"a publication of {len(body)} bytes; at most {FRAME_BYTES_MAX}")
    return plain, body


def frame_of(publication: Publication, hops: int, body: bytes, stamp: bytes | None) -> bytes:
    """The frame of a publication that came as `body`, and needs this stamp, or none."""
    if stamp is None:
        return framed(body, hops)
    if publication.trace:
        stamp = stamp_of(publication.accepted_s, publication.trace)
    return framed(body[:UNSTAMPED_END] + stamp, hops)
