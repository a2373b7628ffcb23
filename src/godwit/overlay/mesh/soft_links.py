"""Soft links: how two brokers agree to use one, and to close it.  Pure.

    one end wants it      OpenLink --> up --> ASKED --> GRANTED: it uses the link
    the other one, too    ASKED --> GRANTED, whenever it likes
    one wants it no more  it sends nothing more; when all is acknowledged --> ENDED
    both do not           the link is closed

Each end uses a link only after the other one has granted that, so none is closed with a publication
on it: an end that has granted does not close, and one that has closed does not grant.

H1  An end closes a link only if it does not use it, and the other end does not.
H2  An end that no longer wants a link says so when all that it has sent there is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from godwit.broker.effects import CloseLink, OpenLink, Send
from godwit.broker.routing import Answer
from godwit.broker.stimuli import LinkKind, Neighbour
from godwit.content.mesh_messages import SoftLinkUse, SoftUse

Answers = list[Answer]


@dataclass(slots=True)
class SoftLinkEnd:
    """One end of a soft link that is up."""

    has_asked: bool = False
    is_used: bool = False
    """This end may send publications."""

    is_used_there: bool = False
    """The other end may."""

    is_away: bool = False
    """The connection is lost."""

    may_close: bool = False
    """An end has used it, or wanted to, and does so no longer."""

    is_closing: bool = False


class SoftLinks:
    def __init__(self, lane: int, is_idle: Callable[[Neighbour], bool]) -> None:
        """`is_idle` says whether all that was sent on a link is settled."""
        self.links: dict[Neighbour, SoftLinkEnd] = {}
        self._lane = lane
        self._is_idle = is_idle
        self._wanted: dict[str, str] = {}
        """Brokers that this one wants links with, and their addresses."""
        self._opening: set[str] = set()

    @property
    def used(self) -> list[str]:
        """Brokers to which publications may go directly."""
        return [
            link.name
            for link, end in self.links.items()
            if end.is_used and not end.is_away and link.name in self._wanted
        ]

    @property
    def wanted(self) -> Collection[str]:
        return self._wanted

    def want(self, addresses: Mapping[str, str]) -> Answers:
        """These are the links that this broker wants from now on, with addresses; no others."""
        new = [broker for broker in addresses if broker not in self._wanted]
        self._wanted = dict(addresses)
        answers: Answers = []
        for broker in new:
            link = Neighbour(broker, self._lane)
            end = self.links.get(link)
            if end is None or end.is_closing:
                answers.append(self._open(broker))
            else:
                answers += self._ask(link, end)
        return answers + self.go_on(self.links)

    def _open(self, broker: str) -> OpenLink:
        self._opening.add(broker)
        return OpenLink(broker, self._wanted[broker], LinkKind.SOFT, self._lane)

    def _ask(self, link: Neighbour, end: SoftLinkEnd) -> Answers:
        if end.has_asked or end.is_used:
            return []
        end.has_asked = True
        return [Send(link, SoftLinkUse(use=SoftUse.ASKED))]

    def go_on(self, links: Iterable[Neighbour]) -> Answers:
        """End the use of links that are not wanted, where all is settled (H2)."""
        answers: Answers = []
        for link in list(links):
            end = self.links.get(link)
            if end is None or link.name in self._wanted or end.is_closing:
                continue
            if end.is_used and self._is_idle(link):
                end.is_used, end.may_close = False, True
                answers.append(Send(link, SoftLinkUse(use=SoftUse.ENDED)))
            answers += self._close_if_unused(link, end)
        return answers

    def _close_if_unused(self, link: Neighbour, end: SoftLinkEnd) -> Answers:
        is_used = end.is_used or end.is_used_there or end.has_asked  # H1
        if is_used or end.is_closing or not end.may_close:
            return []
        end.is_closing = True
        return [CloseLink(link)]

    # -- links come and go ---------------------------------------------------------------------

    def link_up(self, link: Neighbour) -> Answers:
        """A link is up, or the other end has restarted and knows nothing of it."""
        end = self.links[link] = SoftLinkEnd(may_close=link.name in self._opening)
        self._opening.discard(link.name)
        return self._ask(link, end) if link.name in self._wanted else self.go_on((link,))

    def link_down(self, link: Neighbour) -> Answers:
        del self.links[link]
        if link.name not in self._wanted:
            return [CloseLink(link, is_down=True)]
        # The other end has closed it before it knew that this one wants it; or it has failed.
        return [self._open(link.name)]

    def give_up(self, broker: str) -> None:
        """A link with this broker is not wanted any more, whatever state it is in."""
        self._wanted.pop(broker, None)

    def receive(self, message: SoftLinkUse, link: Neighbour) -> Answers:
        end = self.links.get(link)
        if end is None or end.is_closing:
            return []
        match message.use:
            case SoftUse.ASKED:
                end.is_used_there = True
                return [Send(link, SoftLinkUse(use=SoftUse.GRANTED))]
            case SoftUse.GRANTED:
                end.has_asked, end.is_used = False, True
                return self.go_on((link,))
            case SoftUse.ENDED:
                end.is_used_there, end.may_close = False, True
                return [] if link.name in self._wanted else self._close_if_unused(link, end)
