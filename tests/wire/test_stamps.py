"""Publications as frames: what a client wrote is stamped, in whatever way it wrote it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from godwit.content.messages import AdvertisementId, Publication
from godwit.wire.frames import HEADER, decode_from_client, encode, encode_body
from godwit.wire.stamps import UNSTAMPED, frame_of, stamp_of

PLAIN = Publication(
    publisher="paul", sequence=7, advertisement=AdvertisementId("paul/a"), content={"x": 1}
)
VALUES = st.one_of(
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.booleans(),
)
PUBLICATIONS = st.builds(
    Publication,
    publisher=st.text(max_size=20),
    sequence=st.integers(0, 2**63 - 1),
    advertisement=st.text(max_size=20).map(AdvertisementId),
    content=st.dictionaries(st.text(max_size=10), VALUES, max_size=20),
    payload=st.binary(max_size=40) | st.just(UNSTAMPED),
    ttl_hops=st.none() | st.integers(0, 300),
    # What a client should leave alone.
    is_control=st.booleans() | st.just(False),
    accepted_s=st.floats(allow_nan=False) | st.just(0.0),
    size_bytes=st.integers(0, 300) | st.just(0),
    trace=st.integers(0, 300) | st.just(0),
)


def _stamped(came: Publication, accepted_s: float, trace: int = 0) -> Publication:
    return replace(came, is_control=False, accepted_s=accepted_s, trace=trace)


@given(
    PUBLICATIONS, st.floats(0, 2e9), st.integers(0, 3) | st.integers(0, 2**40), st.integers(0, 255)
)
def test_a_stamped_frame_is_what_an_encoder_would_write(
    came: Publication, accepted_s: float, trace: int, hops: int
) -> None:
    stamped = _stamped(came, accepted_s, trace)
    assert frame_of(stamped, hops, encode_body(came), stamp_of(accepted_s)) == encode(stamped, hops)


@given(PUBLICATIONS, st.integers(4, 10))
def test_clients_that_write_fewer_fields_are_understood(came: Publication, fields: int) -> None:
    values = msgspec.to_builtins(came, builtin_types=[bytes])[: fields + 1]
    body = msgspec.msgpack.encode(values)
    stamped = _stamped(_from_client(body), 3.5)
    assert _of_frame(frame_of(stamped, 0, body, stamp_of(3.5))) == stamped


@pytest.mark.parametrize("zero", [b"\xcc\x00", b"\xcd\x00\x00", b"\xcf" + bytes(8)])
def test_numbers_that_are_written_longer_are_understood(zero: bytes) -> None:
    body = encode_body(PLAIN)[:-1] + zero
    stamped = _stamped(_from_client(body), 3.5)
    assert _of_frame(frame_of(stamped, 0, body, stamp_of(3.5))) == stamped


def test_a_payload_that_looks_like_no_stamp_stays_as_it_is() -> None:
    came = replace(PLAIN, payload=UNSTAMPED)
    up_to_payload = msgspec.to_builtins(came, builtin_types=[bytes])[:6]
    body = msgspec.msgpack.encode(up_to_payload)
    assert body.endswith(UNSTAMPED)
    assert _of_frame(frame_of(_stamped(came, 3.5), 0, body, stamp_of(3.5))).payload == UNSTAMPED


def test_what_was_stamped_before_goes_on_as_it_is() -> None:
    body = b"whatever it is"
    assert frame_of(PLAIN, 3, body, None) == HEADER.pack(len(body), 3) + body


def test_only_the_stamp_is_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.wire.stamps.encode", None)
    frame = frame_of(_stamped(PLAIN, 3.5), 0, encode_body(PLAIN), stamp_of(3.5))
    assert _of_frame(frame) == _stamped(PLAIN, 3.5)


def _from_client(body: bytes) -> Publication:
    publication = decode_from_client(body)
    assert isinstance(publication, Publication)
    return publication


def _of_frame(frame: bytes) -> Publication:
    length, _ = HEADER.unpack_from(frame)
    assert length == len(frame) - HEADER.size
    return _from_client(frame[HEADER.size :])
