"""Upgrades: frames of releases are kept as bytes, and what the next minor version adds is ignored.

The bytes are in frames-MAJOR.MINOR.json, written by `python -m tests.protocol.kept_frames`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.protocol.kept_frames import (
    DECODERS,
    KeptFrame,
    accepts,
    builtins,
    kept,
    kept_files,
    read_kept,
)

from godwit.errors import PeerError
from godwit.protocol.frames import KINDS, hello_version, is_of_later_version
from godwit.protocol.versions import PROTOCOL, ProtocolVersion, check_version

NEXT = ProtocolVersion(PROTOCOL.major, PROTOCOL.minor + 1)
KEPT = [pytest.param(each, id=f"{path.stem} {each.kind}")
        for path in kept_files() for each in read_kept(path)]  # fmt: skip
NOW = [pytest.param(kept(kind), id=kind.__name__) for kind in KINDS.values()]


@pytest.mark.parametrize("frame", KEPT)
def test_frames_of_a_release_are_read_as_they_were_written(frame: KeptFrame) -> None:
    for name in frame.decoders:
        read = builtins(DECODERS[name](frame.bytes))
        assert read[: len(frame.values)] == frame.values, "fields are only added, and at the end"


@pytest.mark.parametrize("frame", NOW)
def test_fields_of_the_next_minor_version_are_ignored(frame: KeptFrame) -> None:
    later = msgspec.msgpack.encode([*msgspec.msgpack.decode(frame.bytes), {"more": [1]}, None])
    for name in frame.decoders:
        assert builtins(DECODERS[name](later))[: len(frame.values)] == frame.values


def test_this_release_keeps_all_its_frames() -> None:
    path = Path(__file__).with_name(f"frames-{PROTOCOL}.json")
    hint = "run `python -m tests.protocol.kept_frames`, unless this version is released"
    assert path.exists(), hint
    written = {frame.kind: frame for frame in read_kept(path)}
    assert written == {kind.__name__: kept(kind) for kind in KINDS.values()}, hint


@pytest.mark.parametrize("body", [[200], [200, "x", {"y": 1}], [128, 5]], ids=str)
def test_only_unknown_kinds_of_a_later_version_are_skipped(body: list[object]) -> None:
    data = msgspec.msgpack.encode(body)
    assert not any(accepts(decode, data) for decode in DECODERS.values())
    assert is_of_later_version(data, NEXT)
    assert not is_of_later_version(data, PROTOCOL), "of our own version there is no such kind"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(msgspec.msgpack.encode([4, 5, 6]), id="a known kind that is malformed"),
        pytest.param(msgspec.msgpack.encode({"a": 1}), id="no array"),
        pytest.param(msgspec.msgpack.encode(["x"]), id="no tag"),
        pytest.param(msgspec.msgpack.encode([]), id="nothing"),
        pytest.param(b"\xc1", id="no msgpack"),
        pytest.param(b"", id="no bytes"),
        pytest.param(b"\x91" * 5_000, id="deep"),
    ],
)
def test_what_is_malformed_is_so_in_every_version(data: bytes) -> None:
    assert not is_of_later_version(data, NEXT)
    assert hello_version(data) is None


def test_another_major_version_is_refused_with_both_versions_and_what_to_do() -> None:
    check_version(PROTOCOL)
    check_version(NEXT)
    with pytest.raises(PeerError, match=rf"protocol 2\.3.*{PROTOCOL.major}\.\d.*install"):
        check_version(ProtocolVersion(PROTOCOL.major + 1, 3))
