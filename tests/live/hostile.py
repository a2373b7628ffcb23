# ruff: noqa: ARG005, S106  All phrases take the same arguments; guesses are not passwords.
"""Frames of a hostile peer, which a broker must survive.

BEFORE_HELLO   first frames on which the broker closes the connection
REFUSED        requests of a client that the broker refuses; the connection stays open
HARMLESS       frames of a client that have no effect; the connection stays open
FATAL          frames that a client must not send; only its connection is closed
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

import msgspec

from godwit.content.filters import Filter
from godwit.content.messages import (
    Absent,
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Depart,
    MoveTo,
    Pause,
    Paused,
    Present,
    Publication,
    Refusal,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Sweep,
    Swept,
    Unadvertisement,
    Unsubscription,
)
from godwit.protocol.frames import (
    FRAME_BYTES_MAX,
    HEADER,
    STAMP_BYTES,
    Acknowledge,
    Dropped,
    Goodbye,
    Hello,
    Stayed,
    Welcome,
    encode,
    framed,
)

Phrase: TypeAlias = Callable[[str, Random], bytes]
"""What a client of this name writes."""


def raw(*fields: object, hops: int = 0) -> bytes:
    """A frame with fields that the codec would not produce."""
    return framed(msgspec.msgpack.encode(fields), hops)


def nested(depth: int, opener: bytes = b"\x91") -> bytes:
    """Deeply nested arrays."""
    return framed(opener * depth + b"\x90")


def trailing(frame: bytes, depth: int) -> bytes:
    """A frame with a surplus field, which is deeply nested."""
    body = frame[HEADER.size :]
    fields = body[0] & 0x0F  # It is a short array.
    return framed(bytes([0x90 | fields + 1]) + body[1:] + b"\x91" * depth + b"\x90")


def noise(_: str, random: Random) -> bytes:
    return b"\xff" + random.randbytes(random.randint(1, 300))


def flipped(frame: bytes, random: Random) -> bytes:
    """A frame with a few bits of its body flipped."""
    body = bytearray(frame[HEADER.size :])
    for _ in range(random.randint(1, 4)):
        body[random.randrange(len(body))] ^= 1 << random.randrange(8)
    return framed(bytes(body))


def hello(name: str, **fields: str) -> bytes:
    return encode(msgspec.structs.replace(Hello(role="client", name=name), **fields))


BEFORE_HELLO: Mapping[str, Phrase] = {
    "noise": noise,
    "HTTP": lambda n, r: b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a frame of four gigabytes": lambda n, r: b"\xff\xff\xff\xff\x00\x00",
    "a frame that is too long for a hello": lambda n, r: framed(bytes(5_000)),
    "an empty frame": lambda n, r: framed(b""),
    "half a hello": lambda n, r: hello(n)[:-3],
    "half a header": lambda n, r: b"\x00\x00\x00",
    "a welcome": lambda n, r: encode(Welcome(name=n, stream="s", received=0)),
    "a goodbye": lambda n, r: encode(Goodbye(reason="bye")),
    "an acknowledgement": lambda n, r: encode(Acknowledge(received=0)),
    "a subscription": lambda n, r: encode(subscription(n, r)),
    "a hello from a number": lambda n, r: raw(20, 1, "client", 7, "", 0, ""),
    "a hello in pieces": lambda n, r: raw(20, 1),
    "a hello of another role": lambda n, r: raw(20, 1, "king", n, "", 0, ""),
    "a hello of another version": lambda n, r: raw(20, 99, "client", n, "", 0, ""),
    "a hello with too much received": lambda n, r: raw(20, 1, "client", n, "", 2**64 - 1, ""),
    "a hello with less than nothing received": lambda n, r: raw(20, 1, "client", n, "", -1, ""),
    "a hello without a name": lambda n, r: raw(20, 1, "client", "", "", 0, ""),
    "a hello with a name of many lines": lambda n, r: raw(20, 1, "client", "a\nb", "", 0, ""),
    "a hello with a name like an id": lambda n, r: raw(20, 1, "client", "a/b", "", 0, ""),
    "a hello with a long name": lambda n, r: raw(20, 1, "client", "n" * 129, "", 0, ""),
    "a hello with a reserved name": lambda n, r: hello("$B1.load"),
    "a hello with a broken name": lambda n, r: framed(b"\x96\x14\x01\xa6client\xa2\xff\xfe\xa0\0"),
    "nesting": lambda n, r: nested(4_000),
    "nested maps": lambda n, r: nested(2_000, b"\x81\xa1k"),
    "a hello with a deep end": lambda n, r: trailing(hello(n), 3_000),
    "a neighbour without the secret": lambda n, r: hello("B2", role="broker"),
    "a neighbour with a wrong secret": lambda n, r: hello("B2", role="broker", secret="guess"),
    "a neighbour with a strange secret": lambda n, r: hello("B2", role="broker", secret="gehëim"),
    "the broker itself": lambda n, r: hello("B1", role="broker", secret="tell nobody"),
    "a client that is there": lambda n, r: hello("alice"),
    "a client that is there, and a guess": lambda n, r: hello("paul", stream=r.randbytes(8).hex()),
    "a flipped hello": lambda n, r: flipped(hello("alice"), r),
}


def subscription(name: str, random: Random) -> Subscription:
    filter = Filter.parse(f"class = 'EVIL' and x > {random.randrange(9)}")
    return Subscription(id=SubscriptionId(f"{name}/s{random.randrange(9)}"), filter=filter)


def publication(name: str, random: Random, **fields: object) -> Publication:
    made = Publication(
        publisher=name,
        sequence=random.randrange(100),
        advertisement=AdvertisementId(f"{name}/a1"),
        content={"class": "TICK", "n": -1, "by": name},
    )
    return msgspec.structs.replace(made, **fields)


def _advertisement(id: str, filter: str) -> bytes:
    return encode(Advertisement(id=AdvertisementId(id), filter=Filter.parse(filter)))


def _subscription(id: str, filter: str) -> bytes:
    return encode(Subscription(id=SubscriptionId(id), filter=Filter.parse(filter)))


REFUSED: Mapping[str, Phrase] = {
    "a publication without advertisement": lambda n, r: encode(publication(n, r)),
    "a publication of another client": lambda n, r: encode(publication("paul", r)),
    "a publication under another's advertisement": lambda n, r: encode(
        publication(n, r, advertisement="paul/a1")
    ),
    "a publication with a time to live": lambda n, r: encode(publication(n, r, ttl_hops=1)),
    "a publication that is control": lambda n, r: encode(
        publication(n, r, is_control=True, content={"class": "$LOAD", "x": 1})
    ),
    "a publication with hops": lambda n, r: encode(publication(n, r), r.randrange(65_536)),
    "an advertisement of another client": lambda n, r: _advertisement("paul/a9", "n is present"),
    "an advertisement of control": lambda n, r: _advertisement(f"{n}/a1", "class = '$LOAD'"),
    "an advertisement of nothing": lambda n, r: _advertisement(f"{n}/a2", "x > 5 and x < 3"),
    "a subscription of another client": lambda n, r: _subscription("alice/s1", "n is present"),
    "a subscription to nothing": lambda n, r: _subscription(f"{n}/s1", "x > 5 and x < 3"),
    "a subscription twice": lambda n, r: 2 * _subscription(f"{n}/s1", "x > 5"),
    "an unsubscription of another client": lambda n, r: encode(
        Unsubscription(id=SubscriptionId("alice/s1"))
    ),
    "an unadvertisement of another client": lambda n, r: encode(
        Unadvertisement(id=AdvertisementId("paul/a1"))
    ),
    "a sweep for another client": lambda n, r: encode(Sweep(client="alice", to="B1", move=1)),
}

HARMLESS: Mapping[str, Phrase] = {
    "an acknowledgement of nothing": lambda n, r: encode(Acknowledge(received=0)),
    "a departure": lambda n, r: encode(Depart(move=r.randrange(9))),
    "a pause": lambda n, r: encode(Pause(move=r.randrange(9))),
    "a reason for staying": lambda n, r: encode(Stayed(reason="y" * 256)),
    "a sweep": lambda n, r: encode(Sweep(client=n, to="B1", move=r.randrange(9))),
    "a sweep to nowhere": lambda n, r: encode(Sweep(client=n, to=r.randbytes(99).hex(), move=1)),
}

_TOO_LONG = FRAME_BYTES_MAX + STAMP_BYTES + 1

FATAL: Mapping[str, Phrase] = {
    "noise": noise,
    "a frame that is too long": lambda n, r: HEADER.pack(_TOO_LONG, 0),
    "an empty frame": lambda n, r: framed(b""),
    "a publication before the first": lambda n, r: raw(7, n, -1, f"{n}/a1", {"x": 1}),
    "a long payload": lambda n, r: raw(7, n, 1, f"{n}/a1", {"x": 1}, bytes(1_048_577)),
    "a second hello": lambda n, r: hello(n),
    "a hello as a neighbour": lambda n, r: hello("B2", role="broker", secret="tell nobody"),
    "a welcome": lambda n, r: encode(Welcome(name=n, stream="s", received=0)),
    "a refusal": lambda n, r: encode(Refusal(about="paul/a1", reason="I do not like it")),
    "a report of drops": lambda n, r: encode(Dropped(count=1_000)),
    "a confirmation of a subscription": lambda n, r: encode(
        SubscriptionInEffect(id=SubscriptionId("alice/s1"))
    ),
    "a confirmation of an advertisement": lambda n, r: encode(
        AdvertisementInEffect(id=AdvertisementId("paul/a1"))
    ),
    "a presence": lambda n, r: encode(Present(broker="B1")),
    "an absence": lambda n, r: encode(Absent(broker="B1")),
    "a notice of a sweep": lambda n, r: encode(Swept(move=1)),
    "a notice of a pause": lambda n, r: encode(Paused(move=1)),
    "a request to move": lambda n, r: encode(MoveTo(address="godwit://127.0.0.1:1")),
    "a sweep to a long name": lambda n, r: encode(Sweep(client=n, to="B" * 257, move=1)),
    "a move before the first": lambda n, r: raw(16, -1),
    "an acknowledgement of frames never sent": lambda n, r: encode(Acknowledge(received=10**9)),
    "an unknown kind": lambda n, r: raw(99, n),
    "a kind that is a word": lambda n, r: raw("Publication", n),
    "a map": lambda n, r: framed(msgspec.msgpack.encode({"publisher": n})),
    "a number": lambda n, r: framed(b"\x07"),
    "nesting": lambda n, r: nested(100_000),
    "nested maps": lambda n, r: nested(100_000, b"\x81\xa1k"),
    "a deep end": lambda n, r: trailing(encode(Acknowledge(received=0)), 100_000),
    "a nested value": lambda n, r: raw(7, n, 1, f"{n}/a1", {"x": [1, [2, [3]]]}),
    "a value that is no number": lambda n, r: raw(7, n, 1, f"{n}/a1", {"x": float("nan")}),
    "a value without end": lambda n, r: raw(7, n, 1, f"{n}/a1", {"x": float("inf")}),
    "a value of nothing": lambda n, r: raw(7, n, 1, f"{n}/a1", {"x": None}),
    "an attribute that is a number": lambda n, r: raw(7, n, 1, f"{n}/a1", {7: 7}),
    "an id that is a number": lambda n, r: raw(4, 7, "x > 5"),
    "a filter that is a number": lambda n, r: raw(4, f"{n}/s2", 7),
    "a filter that is no filter": lambda n, r: raw(4, f"{n}/s2", "x >> 5"),
    "a filter that is empty": lambda n, r: raw(1, f"{n}/a2", ""),
    "a filter with an open quote": lambda n, r: raw(4, f"{n}/s2", "x = 'abc"),
    "a filter of a long number": lambda n, r: raw(4, f"{n}/s2", "x > " + "9" * 5_000),
    "a filter of parentheses": lambda n, r: raw(4, f"{n}/s2", "(" * 50_000),
    "a filter of zeros": lambda n, r: raw(4, f"{n}/s2", "x > 1\0"),
}
