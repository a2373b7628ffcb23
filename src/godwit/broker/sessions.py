"""The client door: what each client holds at this broker, and what it may ask for.

Everything a client (or a module, which is a client inside the broker) sends passes here before
it reaches the router, and is refused with a reason if it breaks a rule.  What comes from a
neighbour has passed another broker's door.

C1  An id is used once and only by its owner, and begins with the owner's name.
C2  A publication conforms to an advertisement of its publisher that is in effect, so that no
    subscription it matches can be off its path.
C3  A publisher's sequence numbers rise, so that order and identity are checkable everywhere.
C4  Only modules speak in control classes; anyone may listen to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from godwit.broker.stimuli import Client, Module
from godwit.content.filters import Filter
from godwit.content.messages import (
    HEADER_BYTES,
    Advertisement,
    AdvertisementId,
    Message,
    Publication,
    Subscription,
    SubscriptionId,
    Unadvertisement,
    Unsubscription,
    is_control_content,
    is_control_filter,
    publication_body_bytes,
)
from godwit.content.values import check_record
from godwit.errors import ContentError


class Refused(Exception):  # noqa: N818  A refusal is an answer, not an error of ours.
    """Why a request was not carried out.  Never leaves the broker: it becomes a Refusal."""


@dataclass(slots=True)
class Session:
    """What one client holds here."""

    owner: str
    advertisements: dict[AdvertisementId, Filter] = field(default_factory=dict)
    in_effect: set[AdvertisementId] = field(default_factory=set)
    subscriptions: set[SubscriptionId] = field(default_factory=set)
    last_sequence: int = -1


class Sessions:
    """The sessions of one broker, by hop."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._sessions: dict[Client | Module, Session] = {}

    def of(self, hop: Client | Module) -> Session:
        session = self._sessions.get(hop)
        if session is None:
            owner = hop.name if isinstance(hop, Client) else f"{self._broker}.{hop.name}"
            session = self._sessions[hop] = Session(owner)
        return session

    def admit(self, message: Message, hop: Client | Module, now_s: float) -> Message:
        """Give the message back as the router may have it, or raise Refused."""
        session = self.of(hop)
        match message:
            case Publication():
                return _admit_publication(message, session, hop, now_s)
            case Advertisement():
                _check_new(message.id, session, message.filter)
                if message.id in session.advertisements:
                    raise Refused(f"advertisement {message.id} exists already")
                if is_control_filter(message.filter) and not isinstance(hop, Module):
                    raise Refused("control classes, which start with '$', are the brokers' own")
                session.advertisements[message.id] = message.filter
            case Subscription():
                _check_new(message.id, session, message.filter)
                if message.id in session.subscriptions:
                    raise Refused(f"subscription {message.id} exists already")
                session.subscriptions.add(message.id)
            case Unadvertisement():
                if session.advertisements.pop(message.id, None) is None:
                    raise Refused(f"{session.owner} has no advertisement {message.id}")
                session.in_effect.discard(message.id)
            case Unsubscription():
                if message.id not in session.subscriptions:
                    raise Refused(f"{session.owner} has no subscription {message.id}")
                session.subscriptions.remove(message.id)
            case _:
                raise Refused("only brokers confirm that something is in effect")
        return message

    def confirm(self, advertisement: AdvertisementId, hop: Client | Module) -> None:
        """The router says that an advertisement is in effect."""
        session = self.of(hop)
        if advertisement in session.advertisements:
            session.in_effect.add(advertisement)


def _check_new(id: str, session: Session, filter: Filter) -> None:
    if not id.startswith(f"{session.owner}/"):
        raise Refused(f"an id of {session.owner} begins with '{session.owner}/'; got {id!r}")
    if not filter.is_satisfiable:
        raise Refused(f"nothing can match {filter}")


def _admit_publication(
    publication: Publication, session: Session, hop: Client | Module, now_s: float
) -> Publication:
    if publication.publisher != session.owner:
        raise Refused(f"{session.owner} cannot publish as {publication.publisher}")
    if publication.sequence <= session.last_sequence:
        raise Refused(f"sequence numbers rise: {session.last_sequence} was used already")
    try:
        content = check_record(publication.content)
    except ContentError as error:
        raise Refused(str(error)) from None
    advertisement = session.advertisements.get(publication.advertisement)
    if advertisement is None:
        raise Refused(f"{session.owner} has no advertisement {publication.advertisement}")
    if publication.advertisement not in session.in_effect:
        raise Refused(f"advertisement {publication.advertisement} is not in effect yet")
    if not advertisement.permits(content):
        raise Refused(_why_not_permitted(advertisement, publication))
    is_control = is_control_content(content)
    if is_control and not isinstance(hop, Module):
        raise Refused("control classes, which start with '$', are the brokers' own")
    session.last_sequence = publication.sequence
    return msgspec.structs.replace(
        publication,
        is_control=is_control,
        accepted_s=now_s,
        size_bytes=HEADER_BYTES + publication_body_bytes(publication),
    )


def _why_not_permitted(advertisement: Filter, publication: Publication) -> str:
    unnamed = publication.content.keys() - advertisement.constraints.keys()
    if unnamed:
        return f"the advertisement does not name the attribute {min(unnamed)}"
    failure = advertisement.explain(publication.content).failures[0]
    return f"the advertisement does not permit this: {failure}"
