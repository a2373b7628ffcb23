"""Frames: they survive a round trip, and decoders refuse what a peer may not send."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest

from godwit.content.filters import Filter
from godwit.content.messages import (
    Absent,
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Depart,
    Letter,
    Mark,
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
from godwit.errors import PeerError
from godwit.protocol.frames import (
    DECODE_ERRORS,
    HEADER,
    Acknowledge,
    Dropped,
    Frame,
    Goodbye,
    Hello,
    MeasureRoundTrips,
    ProbeReply,
    ProbeRequest,
    RoundTrips,
    Stayed,
    Welcome,
    decode_from_broker,
    decode_from_client,
    decode_hello,
    decode_probe_reply,
    decode_to_client,
    decode_welcome,
    encode,
    encode_body,
    framed,
    malformed,
)

FILTER = Filter.parse("class = 'STOCK' and volume > 300000 and name in ('x', 'y')")
ADV, SUB = AdvertisementId("paul/a1"), SubscriptionId("alice/s1")

PUBLICATION = Publication(
    publisher="paul",
    sequence=2**62,
    advertisement=ADV,
    content={"class": "STOCK", "volume": 400_000, "price": -1.5, "open": True, "name": "żółw"},
    payload=b"\x00\xff",
    ttl_hops=3,
    is_control=True,
    accepted_s=1.75e9,
    size_bytes=99,
    marks=(Mark("grape", 2**62), Mark("press", 1)),
)

FRAMES: dict[str, Frame] = {
    "publication": PUBLICATION,
    "advertisement": Advertisement(id=ADV, filter=FILTER, edition=3),
    "unadvertisement": Unadvertisement(id=ADV),
    "advertisement in effect": AdvertisementInEffect(id=ADV, edition=3),
    "subscription": Subscription(id=SUB, filter=FILTER, edition=2, local_only=True),
    "unsubscription": Unsubscription(id=SUB),
    "subscription in effect": SubscriptionInEffect(id=SUB, edition=2),
    "letter": Letter(module="grape", body=b"\x00\xff"),
    "refusal": Refusal(about="paul#7", reason="because"),
    "depart": Depart(move=3),
    "pause": Pause(move=2**63 - 1),
    "paused": Paused(move=0),
    "sweep": Sweep(client="alice", to="B2", move=3),
    "swept": Swept(move=3),
    "present": Present(broker="B2"),
    "absent": Absent(broker="B2"),
    "move to": MoveTo(address="godwit://10.0.0.2:7400", broker="B2", within_s=0.5),
    "dropped": Dropped(count=17),
    "stayed": Stayed(reason="the broker is full"),
    "how far": MeasureRoundTrips(
        question=3, brokers=[("B2", "godwit://h:1"), ("B3", "")], within_s=0.5
    ),
    "round trips": RoundTrips(question=3, seconds=[0.25, None]),
    "knock": ProbeRequest(),
    "here": ProbeReply(name="B2"),
    "acknowledge": Acknowledge(received=2**63 - 1),
    "goodbye": Goodbye(reason="over"),
    "hello": Hello(role="broker", name="B1", stream="abc", received=7, secret="s"),  # noqa: S106
    "welcome": Welcome(name="B2", stream="abc", received=0),
}

Decoder = Callable[[bytes], object]

#: Frames that each kind of peer may send; all others are refused.
ACCEPTED: dict[str, tuple[Decoder, set[str]]] = {
    "from a client": (
        decode_from_client,
        {"publication", "advertisement", "unadvertisement", "subscription", "unsubscription",
         "depart", "pause", "sweep", "stayed", "round trips", "acknowledge", "goodbye"},
    ),
    "from a broker": (
        decode_from_broker,
        {"publication", "advertisement", "unadvertisement", "advertisement in effect",
         "subscription", "unsubscription", "subscription in effect", "present", "absent", "sweep",
         "letter", "acknowledge", "goodbye"},
    ),
    "to a client": (
        decode_to_client,
        {"publication", "advertisement in effect", "subscription in effect", "refusal", "dropped",
         "swept", "paused", "move to", "how far", "acknowledge", "goodbye"},
    ),
    "as the first word of a caller": (decode_hello, {"hello", "knock", "goodbye"}),
    "as an answer to a knock": (decode_probe_reply, {"here", "goodbye"}),
    "as an answer to a caller": (decode_welcome, {"welcome", "goodbye"}),
}  # fmt: skip
DECODERS = {peer: decoder for peer, (decoder, _) in ACCEPTED.items()}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("peer", ACCEPTED)
def test_each_peer_may_say_what_is_its_to_say(peer: str, kind: str) -> None:
    decoder, accepted = ACCEPTED[peer]
    frame = FRAMES[kind]

    if kind in accepted:
        assert decoder(encode_body(frame)) == frame
    else:
        with pytest.raises(msgspec.ValidationError):
            decoder(encode_body(frame))


def test_a_frame_is_its_length_its_hops_and_a_body() -> None:
    body = encode_body(PUBLICATION)

    assert encode(PUBLICATION, 513) == len(body).to_bytes(4, "big") + b"\x02\x01" + body
    assert encode(PUBLICATION, 513) == framed(body, 513)
    assert HEADER.unpack(framed(body)[: HEADER.size]) == (len(body), 0)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "x = -9223372036854775808 and y != 1.5e300",
        "name starts with 'a''b' and name != 'ab]c,d'",
        "class in ('żółw', '[a,eq,1]') and on = true and x is present",
        "x is a number and x >= 5 and x < 7",
        "name contains ',' and name ends with '\\'",
    ],
)
def test_filters_travel(text: str) -> None:
    subscription = Subscription(id=SUB, filter=Filter.parse(text))
    received = decode_from_client(encode_body(subscription))

    assert isinstance(received, Subscription)
    assert received.filter == subscription.filter
    assert str(received.filter) == str(subscription.filter)


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


def array(*items: Any) -> bytes:
    return msgspec.msgpack.encode(items)


def publication(**changed: Any) -> bytes:
    fields: dict[str, Any] = {
        "publisher": "paul", "sequence": 1, "advertisement": "paul/a1", "content": {"x": 1},
        "payload": b"", "ttl_hops": None, "is_control": False, "accepted_s": 0.0, "size_bytes": 0,
    }  # fmt: skip
    return array(7, *{**fields, **changed}.values())


def deep_content() -> bytes:
    start, end = publication(content="@@").split(b"\xa2@@")
    return start + b"\x81\xa1x" + nested(100_000) + end


HOSTILE = {
    "nothing": b"",
    "no array": b"\xc0",
    "an empty array": array(),
    "no such kind": array(99),
    "a kind that is no number": array("publication"),
    "half a frame": encode_body(PUBLICATION)[:-1],
    "bytes after the frame": encode_body(FRAMES["acknowledge"]) + b"\x00",
    "a hundred thousand arrays": nested(100_000),
    "a hundred thousand arrays at the end": b"\x93\x16\x01" + nested(100_000),
    "an array of four thousand million": b"\xdd\xff\xff\xff\xff\x07",
    "a map of four thousand million": b"\x93\x07\xa1p\xdf\xff\xff\xff\xff",
    "a string of four thousand million": b"\x92\x16\xdb\xff\xff\xff\xff",
    "no text in a string": b"\x92\x05\xa4\xff\xfe\xfd\xfc",
    "a publication of nothing": publication(content=None),
    "a publication of a list": publication(content=[1]),
    "a publication with a number for a name": publication(content={1: 2}),
    "a value that is a list": publication(content={"x": [1]}),
    "a value that is a record": publication(content={"x": {"y": 1}}),
    "a value that is nothing": publication(content={"x": None}),
    "a value that is bytes": publication(content={"x": b"abc"}),
    "a value as deep as the sea": deep_content(),
    "a sequence of text": publication(sequence="1"),
    "a sequence in halves": publication(sequence=1.5),
    "a payload of numbers": publication(payload=5),
    "a time that is text": publication(accepted_s="noon"),
    "a filter that is a number": array(4, "alice/s1", 5),
    "a filter that is a list": array(4, "alice/s1", ["x = 1"]),
    "a filter that is no filter": array(4, "alice/s1", "x ="),
    "a filter of a huge number": array(4, "alice/s1", f"x = {'9' * 5_000}"),
    "a filter of a huge power": array(4, "alice/s1", "x = 1e999"),
    "a filter of many brackets": array(4, "alice/s1", "[" * 100_000),
    "a filter of a million letters": array(4, "alice/s1", f"x = '{'y' * 1_000_000}'"),
    "a filter of very many predicates": array(4, "alice/s1", " and ".join(["x = 1"] * 10_000)),
    "an edition of text": array(4, "alice/s1", "x = 1", "first"),
    "a move before the first": array(16, -1),
    "a pause of text": array(17, "now"),
    "a pause of a huge number": array(17, 2**64 - 1),
    "a sweep of nobody": array(14, None, "B2", 1),
    "a sweep to a long name": array(14, "alice", "B" * 257, 1),
    "half a sweep": array(14, "alice", "B2"),
    "a presence of a number": array(12, 7),
    "a presence of a long name": array(12, "B" * 257),
    "an absence of nothing": array(13, None),
    "a move to nowhere": array(19, None),
    "a move to a long address": array(19, "godwit://" + "h" * 256),
    "a move in no time": array(19, "godwit://h:1", "B2", 0.0),
    "a long reason to stay": array(25, "y" * 257),
    "less than nothing received": array(22, -1),
    "a huge number received": array(22, 2**64 - 1),
    "a hello of nobody": array(20, 1, "client", ""),
    "a hello of a strange name": array(20, 1, "client", "al ice"),
    "a hello of two lines": array(20, 1, "client", "alice\n"),
    "a hello of a long name": array(20, 1, "client", "a" * 129),
    "a hello in no role": array(20, 1, "king", "alice"),
    "a hello with a long secret": array(20, 1, "broker", "B1", "", 0, "s" * 257),
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("peer", DECODERS)
def test_what_is_no_frame_is_refused_and_nothing_worse(peer: str, body: bytes) -> None:
    with pytest.raises(DECODE_ERRORS) as caught:
        DECODERS[peer](body)
    error = malformed(caught.value)
    assert isinstance(error, PeerError)
    assert "\n" not in str(error)


@pytest.mark.parametrize("peer", DECODERS)
def test_frames_with_a_few_wrong_bytes_are_frames_or_refused(peer: str) -> None:
    random = Random(peer)
    bodies = [encode_body(frame) for frame in FRAMES.values()]
    refused = 0
    for _ in range(3_000):
        body = bytearray(random.choice(bodies))
        for _ in range(random.randint(1, 4)):
            body[random.randrange(len(body))] = random.randrange(256)
        try:
            DECODERS[peer](bytes(body))
        except DECODE_ERRORS:
            refused += 1
    assert 1_500 < refused < 3_000
