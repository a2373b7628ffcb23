"""Client sessions: what each client holds at this broker, and which requests are admitted.

Every message of a client (or a module, which is a client inside the broker) is checked here before
it reaches the router, and refused with a reason if it breaks a rule.  Messages from a neighbour
have been admitted by another broker.

C1  An id belongs to one client: it is the owner's name, a slash, and a word without a slash.
C2  A publication conforms to an advertisement of its publisher that is in effect, so that no
    subscription it matches can be off its path.
C3  The sequence numbers of a publisher rise, so that order and identity can be checked everywhere.
C4  Modules publish in control classes, where publications overtake others and may have a time to
    live; clients publish in the other classes.  Both may subscribe to both.
C5  A refused request changes nothing.

An id may be used again after its withdrawal, with another edition, which the client chooses: a
late confirmation of the earlier use may still be on its way to any broker, or to the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from godwit.broker.stimuli import Hop, LocalClient, Module
from godwit.content.filters import Filter
from godwit.content.messages import (
    CONTROL_CLASS_PREFIX,
    HEADER_BYTES,
    NO_MARKS,
    PAYLOAD_BYTES_MAX,
    SEQUENCE_MAX,
    Advertisement,
    AdvertisementId,
    Depart,
    Mark,
    Message,
    Pause,
    Present,
    Publication,
    RoutingMessage,
    Subscription,
    SubscriptionId,
    Sweep,
    Unadvertisement,
    Unsubscription,
    body_bytes,
    is_control_filter,
)
from godwit.content.values import check_record
from godwit.content.wired import ID_LENGTH_MAX
from godwit.errors import ContentError

#: Names of modules, as clients of their broker, start with this.
RESERVED_PREFIX = "$"
CONTROL_IS_RESERVED = "control classes, which start with '$', are the brokers' own"


#: Decides whether a module marks a publication; 0 is no mark.
Tag: TypeAlias = Callable[[Publication, float], int]


class Refused(Exception):  # noqa: N818  An answer to a client, not an error of the broker.
    """Why a request was refused.  The broker turns it into a `Refusal`."""


class ClientSubscription(NamedTuple):
    """A subscription of a local client."""

    client: str
    id: SubscriptionId
    filter: Filter


@dataclass(slots=True)
class Session:
    """What one client holds here."""

    owner: str
    advertisements: dict[AdvertisementId, Filter] = field(default_factory=dict)
    editions: dict[AdvertisementId, int] = field(default_factory=dict)
    """The latest edition of each advertisement."""

    in_effect: dict[AdvertisementId, Filter] = field(default_factory=dict)
    """The advertisements that may be published under."""

    subscriptions: dict[SubscriptionId, Filter] = field(default_factory=dict)
    released: set[AdvertisementId] = field(default_factory=set)
    """Advertisements that have moved to another broker while this session is there."""

    last_sequence: int = -1

    def forget(self, advertisement: AdvertisementId) -> None:
        self.advertisements.pop(advertisement, None)
        self.editions.pop(advertisement, None)
        self.in_effect.pop(advertisement, None)


class Sessions:
    """The sessions of one broker, by hop."""

    def __init__(self, broker: str, *, codec_checks_values: bool = False) -> None:
        self._broker = broker
        self.taggers: Mapping[str, Tag] = {}
        """Modules that mark publications, by name."""
        self._codec_checks_values = codec_checks_values
        self._sessions: dict[LocalClient | Module, Session] = {}

    def of(self, hop: LocalClient | Module) -> Session:
        session = self._sessions.get(hop)
        if session is None:
            if isinstance(hop, LocalClient) and hop.name.startswith(RESERVED_PREFIX):
                raise Refused(f"client names must not start with {RESERVED_PREFIX!r}")
            session = self._sessions[hop] = Session(self.owner(hop))
        return session

    def owner(self, hop: LocalClient | Module) -> str:
        """The name that ids and publications of `hop` carry."""
        return hop.name if isinstance(hop, LocalClient) else module_owner(self._broker, hop.name)

    def admit(
        self, message: Message, hop: LocalClient | Module, now_s: float
    ) -> RoutingMessage | Publication | Pause:
        """Return the message as the router may have it, or raise Refused."""
        session = self.of(hop)
        if type(message) is Publication:  # By far the most frequent.
            return self.admit_publication(message, session, hop, now_s)
        match message:
            case Advertisement():
                _check_new(message, session)
                # A client that wanted to move away and did not advertises the next edition.
                if message.edition <= session.editions.get(message.id, -1):
                    raise Refused(f"advertisement {message.id} exists already")
                if is_control_filter(message.filter) and not isinstance(hop, Module):
                    raise Refused(CONTROL_IS_RESERVED)
                session.advertisements[message.id] = message.filter
                session.editions[message.id] = message.edition
                session.in_effect.pop(message.id, None)
            case Subscription():
                _check_new(message, session)
                if message.id in session.subscriptions:
                    raise Refused(f"subscription {message.id} exists already")
                session.subscriptions[message.id] = message.filter
            case Unadvertisement():
                _check_id(message.id)
                if message.id not in session.advertisements:
                    raise Refused(f"{session.owner} has no advertisement {message.id}")
                session.forget(message.id)
            case Unsubscription():
                _check_id(message.id)
                if message.id not in session.subscriptions:
                    raise Refused(f"{session.owner} has no subscription {message.id}")
                del session.subscriptions[message.id]
            case Depart():
                # So that a sweep for the client finds this broker.
                return Present(broker=self._broker)
            case Sweep():
                if message.client != session.owner:
                    raise Refused(f"{session.owner} cannot sweep for {message.client}")
            case Pause():
                pass
            case _:
                raise Refused("only brokers confirm that something is in effect")
        return message

    def admit_publication(
        self, publication: Publication, session: Session, hop: LocalClient | Module, now_s: float
    ) -> Publication:
        """As `admit`, for a publication of this session."""
        if not self._codec_checks_values:
            publication = _checked(publication)
        if publication.publisher != session.owner:
            raise Refused(f"{session.owner} cannot publish as {publication.publisher}")
        if publication.sequence <= session.last_sequence:
            raise Refused(f"sequence numbers rise: {session.last_sequence} was used already")
        content = publication.content
        advertisement = session.in_effect.get(publication.advertisement)
        if advertisement is None:
            raise Refused(_why_not_in_effect(publication.advertisement, session))
        if not advertisement.permits_checked(content):
            raise Refused(advertisement.why_not_permitted(content))
        name = content.get("class")
        is_control = isinstance(name, str) and name.startswith(CONTROL_CLASS_PREFIX)
        if is_control is not (type(hop) is Module):
            raise Refused(
                CONTROL_IS_RESERVED if is_control else "a module speaks in control classes"
            )
        if publication.ttl_hops is not None and not is_control:
            raise Refused("only control publications have a time to live")
        session.last_sequence = publication.sequence
        marks = NO_MARKS
        if self.taggers and not is_control:
            tagged = [(name, tag(publication, now_s)) for name, tag in self.taggers.items()]
            marks = tuple(Mark(name, value) for name, value in tagged if value)
        return replace(publication, is_control=is_control, accepted_s=now_s, marks=marks)

    def subscriptions(self) -> Iterator[ClientSubscription]:
        """The subscriptions of clients; those of modules are left out."""
        for hop, session in self._sessions.items():
            if isinstance(hop, LocalClient):
                for id, filter in session.subscriptions.items():
                    yield ClientSubscription(hop.name, id, filter)

    def subscriptions_of(self, client: str) -> Mapping[SubscriptionId, Filter]:
        session = self._sessions.get(LocalClient(client))
        return MappingProxyType({} if session is None else session.subscriptions)

    def publishers(self) -> Iterator[str]:
        """The clients that have advertised something; modules are left out."""
        for hop, session in self._sessions.items():
            if session.advertisements and isinstance(hop, LocalClient):
                yield hop.name

    def holds(self, client: LocalClient) -> bool:
        """Whether the client has advertisements or subscriptions here."""
        session = self._sessions.get(client)
        return session is not None and bool(session.advertisements or session.subscriptions)

    def leave(self, client: LocalClient) -> list[Unsubscription | Unadvertisement]:
        """Forget a client; return the withdrawals of everything it held."""
        session = self._sessions.pop(client, None)
        if session is None:
            return []
        return [
            *(Unsubscription(id=id) for id in sorted(session.subscriptions)),
            *(Unadvertisement(id=id) for id in session.advertisements),
        ]

    def release(self, advertisement: AdvertisementId, hop: LocalClient | Module) -> bool:
        """An advertisement moved to another broker; return whether it was the client's last."""
        session = self._sessions.get(hop)
        if session is None:
            return True
        session.forget(advertisement)
        session.released.add(advertisement)
        return not session.advertisements

    def has_had(self, advertisement: AdvertisementId, hop: LocalClient | Module) -> bool:
        """Whether an advertisement is, or was, one of this session."""
        session = self._sessions.get(hop)
        if session is None:
            return False
        return advertisement in session.advertisements or advertisement in session.released

    def is_move(
        self,
        message: Message,
        hop: LocalClient | Module,
        publisher: Callable[[AdvertisementId], Hop | None],
    ) -> bool:
        """Whether a client arrives with this from another broker; `publisher` says who is where."""
        if isinstance(message, Advertisement) and not self.has_had(message.id, hop):
            return publisher(message.id) not in (None, hop)
        return isinstance(message, Sweep)

    def confirm(self, advertisement: AdvertisementId, hop: LocalClient | Module) -> None:
        """An advertisement is in effect."""
        session = self._sessions.get(hop)
        if session is not None and advertisement in session.advertisements:
            session.in_effect[advertisement] = session.advertisements[advertisement]


def module_owner(broker: str, module: str) -> str:
    """The name of a module as a client.  It is reserved."""
    return f"{RESERVED_PREFIX}{broker}.{module}"


def _check_id(id: object) -> str:
    if not isinstance(id, str) or len(id) > ID_LENGTH_MAX:
        raise Refused(f"an id is a string of at most {ID_LENGTH_MAX} characters")
    return id


def _check_new(request: Advertisement | Subscription, session: Session) -> None:
    owner, slash, word = _check_id(request.id).rpartition("/")
    if owner != session.owner or not slash or not word:
        raise Refused(
            f"an id of {session.owner} is '{session.owner}/' and a word; got {request.id!r}"
        )
    if type(request.edition) is not int or not 0 <= request.edition <= SEQUENCE_MAX:
        raise Refused(f"an edition is an integer from 0 to {SEQUENCE_MAX}")
    if not isinstance(request.filter, Filter):
        raise Refused(f"{request.id} has no filter")
    if not request.filter.is_satisfiable:
        raise Refused(f"nothing can match {request.filter}")


def _why_not_in_effect(advertisement: AdvertisementId, session: Session) -> str:
    if advertisement in session.advertisements:
        return f"advertisement {advertisement} is not in effect yet"
    return f"{session.owner} has no advertisement {advertisement}"


def _checked(publication: Publication) -> Publication:
    """Check, normalise and measure a publication that did not pass a codec.

    A codec has done that already, by the types of `Publication`.  Attribute names need no check
    then: the advertisement that permits them has the same.
    """
    sequence, ttl_hops, payload = publication.sequence, publication.ttl_hops, publication.payload
    if type(sequence) is not int or not 0 <= sequence <= SEQUENCE_MAX:
        raise Refused(f"a sequence number is an integer from 0 to {SEQUENCE_MAX}")
    if ttl_hops is not None and (type(ttl_hops) is not int or ttl_hops < 0):
        raise Refused("a time to live is a number of hops, or none")
    if not isinstance(payload, bytes) or len(payload) > PAYLOAD_BYTES_MAX:
        raise Refused(f"a payload is at most {PAYLOAD_BYTES_MAX} bytes")
    _check_id(publication.advertisement)
    try:
        content = check_record(publication.content)
    except ContentError as error:
        raise Refused(str(error)) from None
    return replace(
        publication, content=content, size_bytes=HEADER_BYTES + body_bytes(content, payload)
    )
