"""A publication as a frame: as it came, with the stamp of the first broker if a client sent it.

    all fields follow | publisher ... ttl_hops | is_control, accepted_s, size_bytes, trace
    1 byte              as the client wrote it   the stamp: 12 bytes, as written by an encoder

So nothing but the stamp is encoded.  Other clients than ours may write less, or in other ways: then
everything is.
"""

from __future__ import annotations

from struct import Struct as Packing

from godwit.content.messages import Publication
from godwit.wire.frames import HEADER, encode

# What MessagePack writes: an array of the tag and ten fields, booleans, a float of eight bytes,
# and an integer up to 127 as a byte.
ALL_FIELDS = 0x9B
FALSE = 0xC2
FLOAT = 0xCB
STAMP = Packing(">BBdBB")


def stamp_of(accepted_s: float) -> bytes:
    """The stamp of publications that are not traced, nor control."""
    return STAMP.pack(FALSE, FLOAT, accepted_s, 0, 0)


#: Nothing else that decodes can end like this behind all fields: a number that is written longer,
#: or a float that is written shorter, has another byte in one of these places.
UNSTAMPED = stamp_of(0.0)
UNSTAMPED_END = -len(UNSTAMPED)


def frame_of(publication: Publication, hops: int, body: bytes, stamp: bytes | None) -> bytes:
    """The frame of a publication that came as `body`, and needs this stamp, or none."""
    if stamp is None:
        return HEADER.pack(len(body), hops) + body
    if body[0] != ALL_FIELDS or body[UNSTAMPED_END:] != UNSTAMPED or publication.trace:
        return encode(publication, hops)
    return HEADER.pack(len(body), hops) + body[:UNSTAMPED_END] + stamp
