"""The client door: what each client holds at this broker, and what it may ask for.

Everything a client (or a module, which is a client inside the broker) sends passes here before
it reaches the router, and is refused with a reason if it breaks a rule.  What comes from a
neighbour has passed another broker's door.

C1  An id belongs to one client: it is the owner's name, a slash, and a word without one.
C2  A publication conforms to an advertisement of its publisher that is in effect, so that no
    subscription it matches can be off its path.
C3  A publisher's sequence numbers rise, so that order and identity are checkable everywhere.
C4  Modules speak in control classes, where publications overtake others and may be given a time to
    live; clients speak in the others.  Anyone may listen to both.
C5  A request that is refused leaves no trace.

An id may be used again once it was withdrawn, with another edition, which the client chooses: a
late confirmation of the earlier use may still be on its way to any broker, or to the client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from msgspec.structs import replace

from godwit.broker.stimuli import Client, Module
from godwit.content.filters import Filter
from godwit.content.messages import (
    HEADER_BYTES,
    ID_LENGTH_MAX,
    PAYLOAD_BYTES_MAX,
    SEQUENCE_MAX,
    Advertisement,
    AdvertisementId,
    Depart,
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
    is_control_content,
    is_control_filter,
)
from godwit.content.values import check_record
from godwit.errors import ContentError

#: Names of modules, as clients of their broker, start with this.
RESERVED_PREFIX = "$"
CONTROL_IS_RESERVED = "control classes, which start with '$', are the brokers' own"


#: Decides whether a publication is traced, and as what.
Tag: TypeAlias = Callable[[Publication, float], int]


class Refused(Exception):  # noqa: N818  A refusal is an answer, not an error of ours.
    """Why a request was not carried out.  Never leaves the broker: it becomes a Refusal."""


@dataclass(slots=True)
class Session:
    """What one client holds here."""

    owner: str
    advertisements: dict[AdvertisementId, Filter] = field(default_factory=dict)
    editions: dict[AdvertisementId, int] = field(default_factory=dict)
    """Of the advertisements, the latest."""

    in_effect: dict[AdvertisementId, Filter] = field(default_factory=dict)
    """Of the advertisements, those that may be published under."""

    subscriptions: set[SubscriptionId] = field(default_factory=set)
    last_sequence: int = -1

    def forget(self, advertisement: AdvertisementId) -> None:
        self.advertisements.pop(advertisement, None)
        self.editions.pop(advertisement, None)
        self.in_effect.pop(advertisement, None)


class Sessions:
    """The sessions of one broker, by hop."""

    def __init__(
        self, broker: str, *, tag: Tag | None = None, codec_checks_values: bool = False
    ) -> None:
        self._broker = broker
        self._tag = tag
        self._codec_checks_values = codec_checks_values
        self._sessions: dict[Client | Module, Session] = {}

    def of(self, hop: Client | Module) -> Session:
        session = self._sessions.get(hop)
        if session is None:
            if isinstance(hop, Client) and hop.name.startswith(RESERVED_PREFIX):
                raise Refused(f"names that start with {RESERVED_PREFIX!r} are the brokers' own")
            session = self._sessions[hop] = Session(self.owner(hop))
        return session

    def owner(self, hop: Client | Module) -> str:
        """The name that ids and publications of `hop` carry."""
        return hop.name if isinstance(hop, Client) else module_owner(self._broker, hop.name)

    def admit(
        self, message: Message, hop: Client | Module, now_s: float
    ) -> RoutingMessage | Publication | Pause:
        """Give the message back as the router may have it, or raise Refused."""
        session = self.of(hop)
        if type(message) is Publication:  # By far the most, and asked without a detour.
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
                session.subscriptions.add(message.id)
            case Unadvertisement():
                _check_id(message.id)
                if message.id not in session.advertisements:
                    raise Refused(f"{session.owner} has no advertisement {message.id}")
                session.forget(message.id)
            case Unsubscription():
                _check_id(message.id)
                if message.id not in session.subscriptions:
                    raise Refused(f"{session.owner} has no subscription {message.id}")
                session.subscriptions.remove(message.id)
            case Depart():
                # So that what sweeps the client's way finds its way.
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
        self, publication: Publication, session: Session, hop: Client | Module, now_s: float
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
        if not advertisement.permits(content):
            raise Refused(advertisement.why_not_permitted(content))
        is_control = is_control_content(content)
        if is_control is not (type(hop) is Module):
            raise Refused(
                CONTROL_IS_RESERVED if is_control else "a module speaks in control classes"
            )
        if publication.ttl_hops is not None and not is_control:
            raise Refused("only control publications have a time to live")
        session.last_sequence = publication.sequence
        tag = self._tag
        trace = 0 if tag is None or is_control else tag(publication, now_s)
        return replace(publication, is_control=is_control, accepted_s=now_s, trace=trace)

    def holds(self, client: Client) -> bool:
        """Does the client hold anything here that it may want to come back for?"""
        session = self._sessions.get(client)
        return session is not None and bool(session.advertisements or session.subscriptions)

    def leave(self, client: Client) -> list[Unsubscription | Unadvertisement]:
        """Forget a client; the answer is what it must be made to withdraw."""
        session = self._sessions.pop(client, None)
        if session is None:
            return []
        return [
            *(Unsubscription(id=id) for id in sorted(session.subscriptions)),
            *(Unadvertisement(id=id) for id in session.advertisements),
        ]

    def release(self, advertisement: AdvertisementId, hop: Client | Module) -> bool:
        """The client has taken its advertisement to another broker; was it the last one?"""
        session = self._sessions.get(hop)
        if session is None:
            return True
        session.forget(advertisement)
        return not session.advertisements

    def confirm(self, advertisement: AdvertisementId, hop: Client | Module) -> None:
        """The router says that an advertisement is in effect."""
        session = self._sessions.get(hop)
        if session is not None and advertisement in session.advertisements:
            session.in_effect[advertisement] = session.advertisements[advertisement]


def module_owner(broker: str, module: str) -> str:
    """The name of a module as a client.  No client can have it."""
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
    """A publication that came as an object: its fields are checked, made plain, and measured.

    A codec has done that already, by the types of `Publication`.  Attribute names need no check
    then: an advertisement that permits them has the same.
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
