"""Messages about the links of the network, and about which part of it is missing.

Brokers flood the state of their links, so each of them knows the whole network
(overlay/link_states.py).  A client asks its broker whether the network is complete.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, NamedTuple, TypeAlias, final

import msgspec

from godwit.content.messages import SEQUENCE_MAX
from godwit.content.wired import ShortText, Wired

#: Links of one broker, and brokers that are missing, in one message.
LINKS_MAX = 16_384

#: Settings of an overlay.
SETTINGS_MAX = 64

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=SEQUENCE_MAX)]

#: The value of a setting; the names of brokers are a tuple.
ShapeSetting: TypeAlias = (
    bool
    | int
    | float
    | ShortText
    | Annotated[tuple[ShortText, ...], msgspec.Meta(max_length=LINKS_MAX)]
)


class LinkStatus(IntEnum):
    """A link, as one of its ends sees it."""

    UP = 0
    """It carries messages."""

    AWAY = 1
    """The connection is lost; the neighbour may come back, and nothing is lost."""

    EXPECTED = 2
    """It was configured and has not been up: everything waits for it."""

    GIVEN_UP = 3
    """It was configured, and has not come up, or come back, in time."""

    PENDING = 4
    """It is connected, and its ends find out whether it closes a cycle."""


class LinkEnd(NamedTuple):
    """A link of a broker."""

    neighbour: ShortText
    """Its name; the address while the broker that dials it does not know the name."""

    status: LinkStatus
    turn: Number = 0
    """Of a pending link: those with a lower turn come first."""


@final
class LinkState(Wired, frozen=True, kw_only=True, tag=47):
    """The links of one broker.  Floods when they change; the highest version counts."""

    broker: ShortText
    version: Number
    links: Annotated[tuple[LinkEnd, ...], msgspec.Meta(max_length=LINKS_MAX)] = ()


@final
class LinkWave(Wired, frozen=True, kw_only=True, tag=48):
    """Passes over all links, pending ones too, and comes back (overlay/link_waves.py)."""

    id: ShortText
    turn: Number
    """Of the link that it is for."""

    is_echo: bool = False


@final
class LinkDecision(Wired, frozen=True, kw_only=True, tag=49):
    """The broker that made a pending link takes it into use; the other end answers the same."""

    is_answer: bool = False


class MissingBroker(NamedTuple):
    """A broker that is configured and not there."""

    name: ShortText
    """The address, if its name is not known."""

    behind: ShortText
    """The broker that has no link with it."""

    def __str__(self) -> str:
        return f"{self.name} (behind {self.behind})"


@final
class NetworkShape(msgspec.Struct, frozen=True, kw_only=True):
    """The links of all brokers in one epoch (overlay/epochs/)."""

    epoch: Number
    """Its number, which is that of the lane of its links."""

    follows: Number = 0
    """The epoch that it takes the place of."""

    links: Annotated[tuple[tuple[ShortText, ShortText], ...], msgspec.Meta(max_length=LINKS_MAX)]
    addresses: Annotated[dict[ShortText, ShortText], msgspec.Meta(max_length=LINKS_MAX)] = {}
    """Where brokers listen, godwit://HOST:PORT; empty in a simulation."""

    overlay: ShortText = ""
    """How publications are routed in it; as in the epoch before if it is empty."""

    settings: Annotated[dict[ShortText, ShapeSetting], msgspec.Meta(max_length=SETTINGS_MAX)] = {}
    """Of that overlay: the clusters and the brokers in their order, or those of a mesh."""

    def neighbours(self, broker: str) -> list[str]:
        """The brokers that one broker is linked with."""
        ends = [b if a == broker else a for a, b in self.links if broker in (a, b)]
        return sorted(ends)

    @property
    def brokers(self) -> list[str]:
        return sorted({end for link in self.links for end in link})


@final
class EpochNews(Wired, frozen=True, kw_only=True, tag=56):
    """To a broker that may have been away: the epochs that are in use.

    It is the first frame on a new stream of a lane, and goes to a caller whose lane is over.
    """

    change: ShortText = ""
    """The last change that was committed."""

    now: NetworkShape | None = None
    """None if the shape is that of the configuration."""

    following: NetworkShape | None = None
    """The next one, if it is committed and the present one is still in use."""

    is_recent: bool = False
    """The epoch before the present one may still be in use elsewhere."""

    before: NetworkShape | None = None
    """That epoch; None if it was the one of the configuration."""


@final
class StatusRequest(Wired, frozen=True, kw_only=True, tag=45):
    """A client asks whether the network is complete."""

    number: Number


@final
class NetworkStatus(Wired, frozen=True, kw_only=True, tag=46):
    """The answer to a StatusRequest: the network as the client's broker sees it."""

    number: Number = 0
    is_complete: bool
    """Every configured link is up, and all brokers have exchanged their tables."""

    missing: Annotated[tuple[MissingBroker, ...], msgspec.Meta(max_length=LINKS_MAX)] = ()
    """The brokers that are not there."""


#: What brokers tell each other about links.
LinkMessage: TypeAlias = LinkState | LinkWave | LinkDecision | EpochNews
