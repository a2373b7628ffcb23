"""Routes of publishers at one broker: what it does itself, and what a mate does for it.

Paper    Cluster-based pub/sub (document 003), section 3.3.
Words    ring route     who passes a publisher's publications on to one other cluster
         cluster route  who matches a publisher's publications for the own cluster
         stand-in       who matches all of them, for a broker that lacks subscriptions

A route changes when nothing is under way on the old one.  Until then publications take the old one,
and if some did, the broker looks again: a publisher is moved as a whole, between two of its
publications, and its order is kept.

V1  A change is completed only if no publication that it concerns was routed since its flush began.
V2  A broker that lacks subscriptions has a stand-in, and matches for no publisher; if the stand-in
    is lost, what is published until the broker has all subscriptions is lost with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from godwit.broker.routing import RouteCluster, RouteRing
from godwit.broker.stimuli import Neighbour

#: How often a change waits again for a publisher that goes on publishing; then it is given up.
ATTEMPTS_MAX = 5


@dataclass(slots=True, eq=False)
class RouteChange:
    """A change that waits: of one publisher."""

    wanted: RouteRing | RouteCluster
    link: Neighbour | None
    """To the broker that is to help; None if this one does the work itself again."""

    attempts: int = 0
    """Flushes that were begun; 0 while it waits for the helper."""

    is_disturbed: bool = False


@dataclass(slots=True)
class StandInChange:
    """All publishers get a stand-in, or none: each as soon as nothing of it is under way."""

    to: Neighbour | None
    staying: set[str] | None = None
    """Publishers that keep the old route; None: all."""

    is_begun: bool = False
    """Whether the stand-in has agreed."""

    disturbing: set[str] = field(default_factory=set)
    """Publishers that have published since the flush began."""

    def begin(self) -> None:
        """The stand-in has agreed, and a flush begins: what was before is within it."""
        self.is_begun, self.disturbing = True, set()

    def keeps_old(self, publisher: str) -> bool:
        """Whether a publication that is routed now takes the old route (V1)."""
        if self.staying is not None and publisher not in self.staying:
            return False
        self.disturbing.add(publisher)
        return True

    def flushed(self) -> bool:
        """What was sent before has arrived; return whether all publishers are moved."""
        self.staying, self.disturbing = self.disturbing, set()
        return not self.staying


class Routes:
    def __init__(self) -> None:
        self.rings: dict[str, dict[int, Neighbour]] = {}
        """By publisher: clusters, and the link to the broker that passes publications on."""
        self.clusters: dict[str, Neighbour] = {}
        """By publisher: the link to the broker that matches."""
        self.stand_in: Neighbour | None = None
        self.stand_in_change: StandInChange | None = None
        self._changes: dict[str, list[RouteChange]] = {}
        """By publisher."""

    @property
    def is_changing(self) -> bool:
        return bool(self._changes) or self.stand_in_change is not None

    def matcher(self, publisher: str) -> Neighbour | None:
        """The broker that matches the publications of a publisher; None if it is this one."""
        found = self.clusters.get(publisher)
        if found is not None:
            return found
        change = self.stand_in_change
        if change is None or change.keeps_old(publisher):
            return self.stand_in
        return change.to

    def disturb(self, publisher: str) -> None:
        """A publication is routed: changes for its publisher have to wait for it (V1)."""
        for change in self._changes.get(publisher, ()):
            change.is_disturbed = True

    # -- changes -------------------------------------------------------------------------------

    def begin(self, change: RouteChange) -> None:
        self._changes.setdefault(change.wanted.publisher, []).append(change)

    def waiting_for(self, link: Neighbour) -> list[RouteChange]:
        """Changes that wait until a link is up."""
        changes = (change for some in self._changes.values() for change in some)
        return [change for change in changes if change.link == link and not change.attempts]

    def is_begun(self, change: RouteChange) -> bool:
        return change in self._changes.get(change.wanted.publisher, ())

    def attempt(self, change: RouteChange) -> None:
        change.attempts += 1
        change.is_disturbed = False

    def complete(self, change: RouteChange) -> None:
        assert not change.is_disturbed, "V1"
        self.give_up(change)
        wanted, publisher = change.wanted, change.wanted.publisher
        if isinstance(wanted, RouteCluster):
            if change.link is None:
                self.clusters.pop(publisher, None)
            else:
                self.clusters[publisher] = change.link
            return
        routes = self.rings.setdefault(publisher, {})
        for cluster in wanted.clusters:
            if change.link is None:
                routes.pop(cluster, None)
            else:
                routes[cluster] = change.link
        if not routes:
            del self.rings[publisher]

    def give_up(self, change: RouteChange) -> None:
        changes = self._changes[change.wanted.publisher]
        changes.remove(change)
        if not changes:
            del self._changes[change.wanted.publisher]

    def give_up_all(self, link: Neighbour) -> None:
        """The broker behind a link does not help."""
        for change in self.waiting_for(link):
            self.give_up(change)
        stand_in = self.stand_in_change
        if stand_in is not None and stand_in.to == link and not stand_in.is_begun:
            self.stand_in_change = None

    def uses(self, link: Neighbour) -> bool:
        """Whether the broker behind a link matches something for this one, or is about to."""
        changes = (change for some in self._changes.values() for change in some)
        change = self.stand_in_change
        return (
            link in self.clusters.values()
            or link in (self.stand_in, None if change is None else change.to)
            or any(each.link == link for each in changes)
        )

    def share(self, publisher: str, link: Neighbour) -> tuple[int, ...]:
        """The clusters that the broker behind a link passes a publisher's publications on to."""
        routes = self.rings.get(publisher, {})
        return tuple(sorted(cluster for cluster, to in routes.items() if to == link))

    def drop(self, broker: str) -> None:
        """A mate is gone: this broker does its own work again."""
        for change in [each for some in self._changes.values() for each in some]:
            if change.link is not None and change.link.name == broker:
                self.give_up(change)
        for publisher, routes in list(self.rings.items()):
            kept = {cluster: to for cluster, to in routes.items() if to.name != broker}
            self.rings[publisher] = kept
            if not kept:
                del self.rings[publisher]
        self.clusters = {p: to for p, to in self.clusters.items() if to.name != broker}
        if self.stand_in_change is not None and _is(self.stand_in_change.to, broker):
            self.stand_in_change = None
        if _is(self.stand_in, broker):
            self.stand_in = None


def _is(link: Neighbour | None, broker: str) -> bool:
    return link is not None and link.name == broker
