"""Messages between the brokers of a mesh (overlay/mesh/), besides those of a tree."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, NamedTuple, TypeAlias, final

import msgspec

from godwit.content.wired import ShortText, Wired


class NearbyBroker(NamedTuple):
    """A broker within delta links (overlay/mesh/master_overlay_map.py)."""

    name: ShortText
    parent: ShortText = ""
    """The next broker on the way to the one that tells; empty for that one itself."""

    address: ShortText = ""
    """godwit://HOST:PORT; empty in a simulation."""


#: Brokers within delta links of one, in one message.
NEARBY_MAX = 16_384


@final
class Neighbourhood(Wired, frozen=True, kw_only=True, tag=70):
    """In a mesh: the sender, and the brokers behind it that the receiver is to know."""

    brokers: Annotated[tuple[NearbyBroker, ...], msgspec.Meta(max_length=NEARBY_MAX)]


class SoftUse(IntEnum):
    """What one end of a soft link says to the other (overlay/mesh/soft_links.py)."""

    ASKED = 0
    GRANTED = 1
    ENDED = 2


@final
class SoftLinkUse(Wired, frozen=True, kw_only=True, tag=71):
    """One end wants to use a soft link, may use it, or uses it no longer."""

    use: SoftUse


@final
class QuiescenceWave(Wired, frozen=True, kw_only=True, tag=72):
    """In a mesh: passes all brokers, and comes back when what was before has arrived."""

    id: ShortText
    is_echo: bool = False


#: What brokers of a mesh tell each other besides the messages of a tree.
MeshMessage: TypeAlias = Neighbourhood | SoftLinkUse | QuiescenceWave
