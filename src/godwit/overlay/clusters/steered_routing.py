"""Routing in clusters whose brokers do a part of each other's work: the mechanism.

Paper    Cluster-based pub/sub (document 003), section 3.3, algorithm 2.
Words    handover_pub -> a publication on a handover link.

What is overloaded, and who helps, is decided by a module (policies/cluster_balancing/), which asks
for routes (`steer`).  A broker may let its mates

    ring       pass the publications of one of its publishers on to some of the other clusters
    cluster    match the publications of a publisher, and send them to the mates
    stand in   match all publications, while it takes no new subscriptions (sub_stop, sub_resume)

                     ring handover           ring         cluster handover        cluster
    publisher -> B  ---------------> mate  ------> B'  --------------------> mate --------> mates

A handover has a link of its own, a lane for each of the two kinds.  So the last hop still says the
phase; and acknowledgements, which are given in the order of each link, wait in no cycle: from left
to right in the picture, never back.

Departs  1. A publisher is handed over as a whole for each cluster, not a portion of its
            publications: only then is their order kept.  It changes its route between two of its
            publications, when all that was sent on the old route has arrived (flushing.py).
         2. The helper in a ring handover only passes on.  In the paper it also begins the cluster
            phase of its own cluster; that is a cluster handover here, so each can be had alone.
         3. A client that moves waits for flushes of all brokers, not for answers that follow
            publications: those may be on their way on other links now (settling.py).
Tested   tests/overlay/test_steered_routing.py, tests/simulation/test_random_steering.py.

K5  Publications are matched for mates only by a broker that has all their subscriptions.
K6  What comes on a ring handover goes to other clusters only; what comes on a cluster handover to
    clients and mates only, and not back to the broker that handed it over.
K7  A broker that matches for others has all subscriptions, and lets no other stand in for it; a
    broker with a stand-in matches for no other.
"""

from __future__ import annotations

from msgspec.structs import replace

from godwit.broker.effects import LinkEffect, OpenLink, Send
from godwit.broker.routing import (
    Confirm,
    Place,
    ResumeSubscriptions,
    RouteCluster,
    RouteRing,
    SteeringStatus,
    SteerRequest,
    StopSubscriptions,
)
from godwit.broker.stimuli import Hop, LinkKind, LocalClient, Neighbour
from godwit.content.messages import (
    ClusterNotice,
    ClusterStep,
    Paused,
    Publication,
    RoutingMessage,
    Subscription,
    Sweep,
    Unsubscription,
)
from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_routing import Answers, ClusterRouting
from godwit.overlay.clusters.flushing import Flushing
from godwit.overlay.clusters.routes import ATTEMPTS_MAX, RouteChange, Routes, StandInChange

#: Added to the lane of the other links; epochs do not reach these numbers.
RING_LANE = 2**40
CLUSTER_LANE = 2**41


class SteeredRouting(ClusterRouting):
    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._ring_lane, self._cluster_lane = place.lane + RING_LANE, place.lane + CLUSTER_LANE
        self._handovers: dict[Neighbour, None] = {}
        """Handover links that are up, of both lanes and in both directions."""
        self._flushing = Flushing()
        self._routes = Routes()
        self._shares: dict[tuple[str, str], tuple[int, ...]] = {}
        """What this broker passes on for others: by broker and publisher, the clusters."""
        self._matches_for: set[Neighbour] = set()
        """Cluster handovers of brokers that this one has agreed to match for (K7)."""
        self._lacking: set[Neighbour] | None = None
        """Mates whose subscriptions this broker may lack; None: it takes subscriptions."""
        self._subscriptions_in = self._subscriptions_out = 0

    # -- publications --------------------------------------------------------------------------

    def destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        if type(last_hop) is Neighbour:
            if last_hop.lane == self._ring_lane:
                return self._shared(publication.publisher, last_hop)
            if last_hop in self._cluster_broker_list:
                return self._local.hops_wanting(publication)  # K3: a cluster_pub.
        found = self._local.hops_wanting(publication)
        if publication.ttl_hops is None or hops < publication.ttl_hops:
            self._routes.disturb(publication.publisher)
            found |= self._cluster_phase(publication, last_hop)
            if type(last_hop) is not Neighbour:
                found |= self._ring_phase(publication.publisher)
        found.pop(last_hop, None)
        return found

    def _shared(self, publisher: str, owner: Neighbour) -> dict[Hop, None]:
        """Where a publication goes that another broker has let this one pass on (K6)."""
        share = self._shares.get((owner.name, publisher), ())
        return {link: None for link in self._ring if self._cluster_of(link) in share}

    def _ring_phase(self, publisher: str) -> dict[Hop, None]:
        routes = self._routes.rings.get(publisher)
        if not routes:
            return self._ring
        found: dict[Hop, None] = {
            link: None for link in self._ring if self._cluster_of(link) not in routes
        }
        return found | dict.fromkeys(routes.values())

    def _cluster_phase(self, publication: Publication, last_hop: Hop) -> dict[Hop, None]:
        if self._is_handed_over(last_hop):  # K6
            found = self._cluster.brokers_wanting(publication)
            found.pop(Neighbour(last_hop.name, self._lane), None)
            return found
        matcher = self._routes.matcher(publication.publisher)
        if matcher is not None:
            return {matcher: None}
        if self._lacking is not None:  # K5
            return {}  # V2: the stand-in is lost.
        return self._cluster.brokers_wanting(publication)

    def _is_handed_over(self, last_hop: Hop) -> bool:
        return type(last_hop) is Neighbour and last_hop.lane == self._cluster_lane

    # -- what was sent has arrived -------------------------------------------------------------

    def _linked_mates(self) -> list[Neighbour]:
        return [link for link in self._links if link in self._cluster_broker_list]

    def _ways(self, last_hop: Hop | None) -> list[Neighbour]:
        """Links that publications from this hop may take; without one, those of all clients."""
        ring = [link for link in self._links if link in self._ring]
        if isinstance(last_hop, Neighbour):
            if last_hop.lane == self._ring_lane:
                return ring
            if last_hop in self._cluster_broker_list:
                return []
            if last_hop.lane == self._cluster_lane:
                return self._linked_mates()
        helpers = [link for link in self._handovers if link.lane == self._cluster_lane]
        if isinstance(last_hop, Neighbour):
            return [*self._linked_mates(), *helpers]
        ring_helpers = [link for link in self._handovers if link.lane == self._ring_lane]
        return [*ring_helpers, *ring, *self._linked_mates(), *helpers]

    def handle(self, message: RoutingMessage, last_hop: Hop) -> Answers:
        if not isinstance(message, ClusterNotice):
            if isinstance(message, Subscription | Unsubscription):
                self._subscriptions_in += isinstance(last_hop, Neighbour)
            return self._counted(super().handle(message, last_hop))
        assert isinstance(last_hop, Neighbour), "clients do not send these"
        match message.step:
            case ClusterStep.FLUSH:
                return self._flushing.pass_on(message.number, last_hop, self._ways(last_hop))
            case ClusterStep.FLUSHED:
                return self._flushing.flushed(message.number, last_hop)
            case ClusterStep.RING_SHARE:
                self._shares[last_hop.name, message.publisher] = message.clusters
                if not message.clusters:
                    del self._shares[last_hop.name, message.publisher]
                return []
            case ClusterStep.SUB_STOP:
                self._local.withhold(last_hop)
                return []
            case ClusterStep.SUB_RESUME:
                resent = self._local.resend(last_hop)
                done = ClusterNotice(step=ClusterStep.SUB_RESENT)
                return self._counted([*resent, Send(last_hop, done)])
            case ClusterStep.SUB_RESENT:
                return self._has_all_of(last_hop)
            case ClusterStep.HELP:
                return self._asked_to_help(last_hop)
            case ClusterStep.HELPS:
                return self._is_helped(last_hop)
            case ClusterStep.CANNOT_HELP:
                self._routes.give_up_all(last_hop)
                return []
            case ClusterStep.HELP_OVER:
                self._matches_for.discard(last_hop)
                return []

    def _counted(self, answers: Answers) -> Answers:
        for answer in answers:
            if isinstance(answer, Send):
                kind = Subscription | Unsubscription
                self._subscriptions_out += isinstance(answer.message, kind)
        return answers

    def pause(self, client: LocalClient, move: int) -> Answers:
        return self._flushing.begin(self._ways(None), lambda: [Confirm(client, Paused(move=move))])

    def _on_sweep(self, sweep: Sweep, last_hop: Hop) -> Answers:
        if sweep.origin:
            return super()._on_sweep(sweep, last_hop)
        if not isinstance(last_hop, Neighbour):
            sweep = replace(sweep, by=self._broker)
            to = [link for link in self._links if link in self._ring] + self._linked_mates()
        else:
            to = [] if last_hop in self._cluster_broker_list else self._linked_mates()
        answer = replace(sweep, origin=self._broker)
        return [
            *(Send(link, sweep) for link in to),
            *self._flushing.begin(self._ways(None), lambda: self._settling.answered(answer)),
        ]

    # -- routes --------------------------------------------------------------------------------

    @property
    def steering(self) -> SteeringStatus:
        rings = self._routes.rings
        return SteeringStatus(
            mates=tuple(sorted(mate.name for mate in self._linked_mates())),
            other_clusters=tuple(sorted(self._cluster_of(link) for link in self._ring)),
            rings={(p, c): to.name for p, routes in rings.items() for c, to in routes.items()},
            clusters={p: to.name for p, to in self._routes.clusters.items()},
            stand_in=None if self._routes.stand_in is None else self._routes.stand_in.name,
            matches_for=tuple(sorted(owner.name for owner in self._matches_for)),
            is_changing=self._routes.is_changing,
            subscriptions_in=self._subscriptions_in,
            subscriptions_out=self._subscriptions_out,
        )

    def steer(self, request: SteerRequest) -> list[Send | LinkEffect]:
        match request:
            case RouteRing(to=to):
                link = self._helper(to, self._ring_lane)
                answers = self._change_route(RouteChange(request, link))
            case RouteCluster(to=to):
                link = self._helper(to, self._cluster_lane)
                answers = self._change_route(RouteChange(request, link))
            case StopSubscriptions(stand_in=name):
                answers = self._change_stand_in(self._helper(name, self._cluster_lane))
            case ResumeSubscriptions():
                answers = self._resume()
        assert all(isinstance(each, Send | LinkEffect) for each in answers)
        return answers  # type: ignore[return-value]  # Checked in the line before.

    def _helper(self, name: str | None, lane: int) -> Neighbour | None:
        if name is None:
            return None
        if Neighbour(name, self._lane) not in self._cluster_broker_list:
            raise UsageError(f"{name} cannot help {self._broker}: it is not in its cluster")
        return Neighbour(name, lane)

    def _opened(self, link: Neighbour | None) -> Answers:
        """Open a handover link, unless there is one."""
        if link is None or link in self._handovers:
            return []
        return [OpenLink(link.name, "", LinkKind.SOFT, link.lane)]

    def _is_up(self, link: Neighbour | None) -> bool:
        return link is None or link in self._handovers

    def _change_route(self, change: RouteChange) -> Answers:
        self._routes.begin(change)
        link = change.link
        if link is None or (isinstance(change.wanted, RouteRing) and self._is_up(link)):
            return self._attempt(change)
        return self._asked_for_help(link)

    def _asked_for_help(self, link: Neighbour) -> Answers:
        """Ask a broker to match for this one; first open the link, unless there is one (K7)."""
        if not self._is_up(link):
            return self._opened(link)
        return [Send(link, ClusterNotice(step=ClusterStep.HELP))]

    def _asked_to_help(self, owner: Neighbour) -> Answers:
        if self._routes.stand_in is not None or self._routes.stand_in_change is not None:
            return [Send(owner, ClusterNotice(step=ClusterStep.CANNOT_HELP))]
        self._matches_for.add(owner)
        return [Send(owner, ClusterNotice(step=ClusterStep.HELPS))]

    def _is_helped(self, helper: Neighbour) -> Answers:
        answers: Answers = []
        for change in self._routes.waiting_for(helper):
            answers += self._attempt(change)
        stand_in = self._routes.stand_in_change
        if stand_in is not None and stand_in.to == helper and not stand_in.is_begun:
            stand_in.begin()
            answers += self._move_publishers()
        return answers + self._released(helper)

    def _released(self, helper: Neighbour | None) -> Answers:
        """Tell a helper that nothing more is handed over to it, if that is so (K7)."""
        if helper is None or helper not in self._handovers or self._routes.uses(helper):
            return []
        return [Send(helper, ClusterNotice(step=ClusterStep.HELP_OVER))]

    def _attempt(self, change: RouteChange) -> Answers:
        self._routes.attempt(change)
        return self._flushing.begin(self._ways(None), lambda: self._after_flush(change))

    def _after_flush(self, change: RouteChange) -> Answers:
        if not self._routes.is_begun(change):
            return []  # The helper is gone.
        if change.is_disturbed:
            if change.attempts < ATTEMPTS_MAX:
                return self._attempt(change)
            self._routes.give_up(change)
            is_cluster = isinstance(change.wanted, RouteCluster)
            return self._released(change.link) if is_cluster else []
        publisher = change.wanted.publisher
        before = set(self._routes.rings.get(publisher, {}).values())
        matcher = self._routes.clusters.get(publisher)
        self._routes.complete(change)
        if isinstance(change.wanted, RouteCluster):
            return self._released(matcher)
        after = set(self._routes.rings.get(publisher, {}).values())
        return [self._share(publisher, link) for link in sorted(before | after)]

    def _share(self, publisher: str, link: Neighbour) -> Send:
        """Tell a helper what to do with the publications that follow."""
        clusters = self._routes.share(publisher, link)
        step = ClusterStep.RING_SHARE
        return Send(link, ClusterNotice(step=step, publisher=publisher, clusters=clusters))

    # -- sub_stop and sub_resume ---------------------------------------------------------------

    def _change_stand_in(self, to: Neighbour | None) -> Answers:
        routes = self._routes
        if routes.stand_in_change is not None or (to is None) == (routes.stand_in is None):
            return []
        if self._matches_for:  # K7
            return []
        routes.stand_in_change = StandInChange(to)
        return self._move_publishers() if to is None else self._asked_for_help(to)

    def _move_publishers(self) -> Answers:
        return self._flushing.begin(self._ways(None), self._publishers_flushed)

    def _publishers_flushed(self) -> Answers:
        change = self._routes.stand_in_change
        if change is None:
            return []
        if not change.flushed():
            return self._move_publishers()
        before, self._routes.stand_in = self._routes.stand_in, change.to
        self._routes.stand_in_change = None
        if change.to is None:
            return self._released(before)
        self._lacking = set(self._linked_mates())
        stop = ClusterNotice(step=ClusterStep.SUB_STOP)
        return [Send(mate, stop) for mate in self._linked_mates()]

    def _resume(self) -> Answers:
        if self._routes.stand_in is None or self._routes.stand_in_change is not None:
            return []
        return self._asked_for_all()

    def _asked_for_all(self) -> Answers:
        resume = ClusterNotice(step=ClusterStep.SUB_RESUME)
        return [Send(mate, resume) for mate in self._linked_mates()]

    def _has_all_of(self, mate: Neighbour) -> Answers:
        if self._lacking is None:
            return []
        self._lacking.discard(mate)
        if self._lacking:
            return []
        self._lacking = None
        return self._change_stand_in(None)

    # -- links ---------------------------------------------------------------------------------

    def link_up(self, neighbour: Neighbour, kind: LinkKind = LinkKind.PRIMARY) -> Answers:
        if neighbour.lane not in (self._ring_lane, self._cluster_lane):
            return super().link_up(neighbour, kind)
        self._handovers[neighbour] = None
        if neighbour.lane == self._cluster_lane:
            return self._asked_for_help(neighbour) if self._routes.uses(neighbour) else []
        waiting = self._routes.waiting_for(neighbour)
        return [answer for change in waiting for answer in self._attempt(change)]

    def link_down(self, neighbour: Neighbour) -> Answers:
        lanes = (self._ring_lane, self._cluster_lane)
        answers: Answers = []
        if neighbour not in self._handovers:
            answers = super().link_down(neighbour)
            if neighbour in self._cluster_broker_list:
                answers += self._has_all_of(neighbour)
        handovers = {Neighbour(neighbour.name, lane) for lane in lanes}
        had_stand_in = self._routes.stand_in is not None
        self._routes.drop(neighbour.name)
        for link in (neighbour, *handovers):
            self._handovers.pop(link, None)
            self._matches_for.discard(link)
            answers += self._flushing.link_down(link)
        gone = [key for key in self._shares if key[0] == neighbour.name]
        for key in gone:
            del self._shares[key]
        if had_stand_in and self._routes.stand_in is None and self._lacking is not None:
            answers += self._asked_for_all()
        return answers

    def check(self) -> None:
        super().check()
        routes = self._routes
        has_stand_in = routes.stand_in is not None or routes.stand_in_change is not None
        assert not (has_stand_in and self._matches_for), f"K7: {self._matches_for}"
        helpers = {to for some in routes.rings.values() for to in some.values()}
        helpers |= set(routes.clusters.values())
        helpers |= {routes.stand_in} if routes.stand_in is not None else set()
        assert helpers <= self._handovers.keys(), f"routes over links that are not up: {helpers}"
