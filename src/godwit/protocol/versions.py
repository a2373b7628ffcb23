"""Versions of the protocol, and how peers of different versions get along.

Major versions must be equal.  Minor versions may differ, in either direction, because a minor
version only adds: fields at the end of a frame, with defaults, which an older peer ignores and a
newer one fills in; and kinds of frames, which an older peer skips.  A skipped frame is received: it
has its number in the stream and is acknowledged.  So a new kind is numbered, and if it must not be
skipped it is sent only to peers whose minor version has it (`Connection.peer_version`).

docs/decisions/0021-versions.md has the rules for a new version.
"""

from __future__ import annotations

from typing import NamedTuple

from godwit.errors import PeerError


class ProtocolVersion(NamedTuple):
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


#: What this release speaks.
PROTOCOL = ProtocolVersion(1, 5)


def check_version(peer: ProtocolVersion) -> None:
    """Raise PeerError if it cannot be understood."""
    if peer.major != PROTOCOL.major:
        raise PeerError(
            f"one side speaks protocol {peer}, the other {PROTOCOL}, and these do not understand"
            " each other: install releases with the same first number on both"
            " (`godwit --version` shows it)"
        )
