"""Publications as frames: they are stamped, however a client encoded them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from godwit.content.messages import NO_MARKS, AdvertisementId, Mark, Publication
from godwit.errors import PeerError
from godwit.protocol.frames import FRAME_BYTES_MAX, HEADER, decode_from_client, encode, encode_body
from godwit.protocol.stamps import UNSTAMPED, frame_of, is_unstamped, stamp_of, unstamped

PLAIN = Publication(
    publisher="paul", sequence=7, advertisement=AdvertisementId("paul/a"), content={"x": 1}
)
VALUES = st.one_of(
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.booleans(),
)
MARKS = st.lists(
    st.builds(Mark, module=st.text(max_size=9), value=st.integers(-300, 2**40)), max_size=3
).map(tuple)
PUBLICATIONS = st.builds(
    Publication,
    publisher=st.text(max_size=20),
    sequence=st.integers(0, 2**63 - 1),
    advertisement=st.text(max_size=20).map(AdvertisementId),
    content=st.dictionaries(st.text(max_size=10), VALUES, max_size=20),
    payload=st.binary(max_size=40) | st.just(UNSTAMPED),
    ttl_hops=st.none() | st.integers(0, 300),
    # Fields that a client should not set.
    is_control=st.booleans() | st.just(False),
    accepted_s=st.floats(allow_nan=False) | st.just(0.0),
    size_bytes=st.integers(-300, 300) | st.just(0),
    marks=MARKS,
)


def _plain(came: Publication) -> Publication:
    return replace(came, is_control=False, accepted_s=0.0, size_bytes=0, marks=NO_MARKS)


def _taken_in(body: bytes) -> tuple[Publication, bytes]:
    """As a port handles the frame of a client."""
    publication = decode_from_client(body)
    assert isinstance(publication, Publication)
    return (publication, body) if is_unstamped(body) else unstamped(publication)


@given(PUBLICATIONS, st.floats(0, 2e9), MARKS, st.integers(0, 255))
def test_a_stamped_frame_is_what_an_encoder_would_write(
    came: Publication, accepted_s: float, marks: tuple[Mark, ...], hops: int
) -> None:
    plain, body = _taken_in(encode_body(came))
    assert plain == _plain(came)
    stamped = replace(plain, accepted_s=accepted_s, marks=marks)
    assert frame_of(stamped, hops, body, stamp_of(accepted_s)) == encode(stamped, hops)


@given(PUBLICATIONS, st.integers(4, 10))
def test_clients_that_write_fewer_fields_are_understood(came: Publication, fields: int) -> None:
    values = msgspec.to_builtins(came, builtin_types=[bytes])[: fields + 1]
    plain, body = _taken_in(msgspec.msgpack.encode(values))
    assert is_unstamped(body)
    assert encode_body(plain) == body
    assert plain.content == came.content


@pytest.mark.parametrize("empty", [b"\xdc" + bytes(2), b"\xdd" + bytes(4)])
def test_arrays_that_are_written_longer_are_understood(empty: bytes) -> None:
    assert _taken_in(encode_body(PLAIN)[:-1] + empty) == (PLAIN, encode_body(PLAIN))


def test_a_payload_that_looks_like_no_stamp_stays_as_it_is() -> None:
    came = replace(PLAIN, payload=UNSTAMPED)
    up_to_payload = msgspec.to_builtins(came, builtin_types=[bytes])[:6]
    body = msgspec.msgpack.encode(up_to_payload)
    assert body.endswith(UNSTAMPED)
    assert _taken_in(body) == (came, encode_body(came))


def test_what_was_stamped_before_goes_on_as_it_is() -> None:
    body = b"whatever it is"
    assert frame_of(PLAIN, 3, body, None) == HEADER.pack(len(body), 3) + body


def test_nothing_but_the_stamp_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    body = encode_body(PLAIN)
    assert is_unstamped(body)
    monkeypatch.setattr("godwit.protocol.stamps.encode_body", None)
    for marks in (NO_MARKS, (Mark("pop", 1),), (Mark("pop", 1), Mark("grape", 2**40))):
        stamped = replace(PLAIN, accepted_s=3.5, marks=marks)
        assert frame_of(stamped, 0, body, stamp_of(3.5)) == encode(stamped)


def test_short_floats_make_no_frame_that_is_too_large_for_a_neighbour() -> None:
    floats = FRAME_BYTES_MAX // 15
    wrote = [7, "paul", 7, "paul/a", {}]
    entries = [b"\xa8%08x" % number + b"\xca" + bytes(4) for number in range(floats)]
    content = b"\xdf" + floats.to_bytes(4, "big") + b"".join(entries)
    body = msgspec.msgpack.encode(wrote)[:-1] + content
    assert len(body) < FRAME_BYTES_MAX
    with pytest.raises(PeerError, match=f"a publication of .* bytes; at most {FRAME_BYTES_MAX}"):
        _taken_in(body)
