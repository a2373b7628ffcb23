"""Routing in a mesh of soft links over a tree of primary links (Publiy).

Paper    Opportunistic multipath forwarding in content-based publish/subscribe overlays (Publiy),
         sections 3 to 6.
Words    MST -> anchor_table.py; WST, WOM -> forwarding.py; pLinks -> the links of the
         tree; sLinks -> soft links; cLinks -> candidates, which the policy keeps.
Claim    As in a tree: once a subscription is in effect, every publication that matches it and that
         is published under an advertisement in effect reaches it exactly once, in publisher order;
         over fewer links, past brokers that do not need it.

    primary links    carry all that a tree has: advertisements, subscriptions, names, sweeps, resync
    soft links       carry publications; they come and go, and may fail
    neighbourhoods   are told between neighbours: each broker knows the tree within delta links
    subscriptions    travel with an anchor, the broker up to delta links nearer to the subscriber;
                     one holds back another on a link only if both have the same anchor there
    publications     go to linked brokers that the strategy chooses from the anchors that match;
                     each passes them on away from the one that they came from
    order            paths are sticky until copies are acknowledged (forwarding.py)
    moves            wait for acknowledgements in the place of sweeps (quiescence.py)

Departs  1. In effect, order, moves, recovery, links that fail: ours.  See the files of this folder.
         2. Control publications, those with a time to live, and those that a policy has marked
            take the primary links: policies follow publications from broker to broker.
Tested   tests/overlay/mesh/, tests/simulation/test_random_meshes.py, tests/testing/storms/

X1  An anchor is in the direction that its subscription came from, and within the map.
X2  Every neighbour was told what the map has behind this broker, once it has recovered.
X3  A soft link in use is with a broker of the map that is not a primary neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from godwit.broker.effects import Send
from godwit.broker.routing import Answer, Confirm, Place
from godwit.broker.stimuli import Hop, LinkKind, LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.mesh_messages import MeshMessage, Neighbourhood, QuiescenceWave
from godwit.content.messages import Paused, Publication, RoutingMessage, Subscription, Sweep
from godwit.overlay.mesh.anchor_table import AnchorPositions, AnchorTable
from godwit.overlay.mesh.anchors import anchor_for_neighbour
from godwit.overlay.mesh.forwarding import Forwarding
from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.mesh.mesh_settings import MeshSettings, mesh_settings_of
from godwit.overlay.mesh.quiescence import Quiescence
from godwit.overlay.mesh.soft_links import SoftLinks
from godwit.overlay.mesh.strategies import ForwardingStrategy
from godwit.overlay.mesh.unsettled_copies import Positions, UnsettledCopies
from godwit.overlay.tree.routing_tables import Link, SubscriptionEntry
from godwit.overlay.tree.tree_routing import TreeRouting

Answers = list[Answer]


class MeshRouting(TreeRouting):
    """The router of one broker in a mesh; `place.settings` see mesh_settings.py."""

    def __init__(self, place: Place) -> None:
        self.settings: MeshSettings = mesh_settings_of(place.settings)
        self._keeps_order = self.settings.keeps_order
        self.mom = MasterOverlayMap(place.broker, self.settings.delta)
        self._broker = place.broker
        self._lane = place.lane
        self.copies = UnsettledCopies()
        self.soft_links = SoftLinks(place.lane, self.copies.is_idle)
        self._quiescence = Quiescence(self.copies)
        self._sweeping: dict[str, tuple[Sweep, Hop]] = {}
        """Sweeps that wait for a wave, by its id."""
        self._wave_count = 0
        self._pausing: list[tuple[Positions, Confirm]] = []
        self._views: dict[Neighbour, Neighbourhood] = {}
        """What each primary neighbour was told."""
        self.traffic: dict[int, int] = {}
        """Publications by their anchors, for the policy that manages links; see `take_traffic`."""
        self.output_utilisation: Callable[[float], float] = _idle
        self._is_busy = False
        """SH: whether the output is used to more than the threshold."""
        self._matched: tuple[object, Hop, int, dict[Hop, None]] | None = None
        """The content that was matched last, where it came from, and the result."""
        self._positions = AnchorPositions()
        super().__init__(place)
        self._interests = self._table = AnchorTable(self._positions)
        for link in place.links:
            self.mom.add(link.name)
        self._directions: dict[Neighbour, str] = {}
        """Of links: the primary neighbour on the way, also when they are not used any more."""
        self._rebuild()

    @property
    def neighbours(self) -> Mapping[Neighbour, LinkKind]:
        return {**super().neighbours, **dict.fromkeys(self.soft_links.links, LinkKind.SOFT)}

    def counts(self, neighbour: Neighbour) -> bool:
        return neighbour.lane == self._lane

    @property
    def uses_soft_links(self) -> bool:
        return any(end.is_used for end in self.soft_links.links.values())

    def _linked(self) -> set[str]:
        return {link.name for link in self._links} | set(self.soft_links.used)

    # -- publications --------------------------------------------------------------------------

    def destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        anchors, found = self._wanting(publication, last_hop)
        self._matched = None
        if not anchors or (publication.ttl_hops is not None and hops >= publication.ttl_hops):
            return found
        links = self.forwarding.links(self._fwd_now(publication, anchors, now_s))
        if not publication.is_control and links:
            self.traffic[anchors] = self.traffic.get(anchors, 0) + 1
            self.copies.send(publication.publisher, links)
        return found | links

    def preview(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        """As `destinations`, of a publication that is not sent."""
        anchors, found = self._wanting(publication, last_hop)
        self._matched = None
        if not anchors or (publication.ttl_hops is not None and hops >= publication.ttl_hops):
            return found
        return found | self.forwarding.links(self._fwd_now(publication, anchors, now_s))

    def has_to_wait(self, publication: Publication, last_hop: Hop, now_s: float) -> bool:
        """Whether a publication would overtake an earlier one of its publisher."""
        if not self._keeps_order or publication.is_control:
            return False
        if not self.copies.of(publication.publisher):
            return False
        anchors, found = self._wanting(publication, last_hop)
        has_to_wait = anchors != 0 and self._fwd(publication, anchors, now_s) is None
        # Where to send it is the next question; but if it waits, the tables may change.
        self._matched = None if has_to_wait else (publication.content, last_hop, anchors, found)
        return has_to_wait

    def _wanting(self, publication: Publication, last_hop: Hop) -> tuple[int, dict[Hop, None]]:
        """The anchors that want a publication, and the clients and modules that do."""
        matched = self._matched
        if matched is not None and matched[0] is publication.content and matched[1] == last_hop:
            return matched[2:]
        anchors, others = self._table.wanting(publication)
        if type(last_hop) is Neighbour:
            anchors = self.forwarding.beside(anchors, last_hop)
        elif others:
            others.pop(last_hop, None)
        return anchors, others

    def _fwd_now(self, publication: Publication, anchors: int, now_s: float) -> int:
        fwd = None if publication.is_control else self._fwd(publication, anchors, now_s)
        if fwd is None:  # Control; or of a module, and no driver lets it wait.
            return self.forwarding.decide(anchors, ForwardingStrategy.S0)
        return fwd

    def _fwd(self, publication: Publication, anchors: int, now_s: float) -> int | None:
        """The linked brokers that get it; None if it has to wait."""
        strategy = self.settings.strategy
        if strategy is ForwardingStrategy.SH:
            strategy = self._hybrid(now_s)
        on_primary = bool(publication.marks) or publication.ttl_hops is not None
        if not self._keeps_order:
            return self.forwarding.decide(
                anchors, ForwardingStrategy.S0 if on_primary else strategy
            )
        unsettled = self.copies.of(publication.publisher)
        if on_primary:
            fwd = self._in_order(anchors, ForwardingStrategy.S0, unsettled)
            if fwd is not None:
                return fwd
        return self._in_order(anchors, strategy, unsettled)

    def _in_order(
        self, anchors: int, strategy: ForwardingStrategy, unsettled: Iterable[Neighbour]
    ) -> int | None:
        if not unsettled:
            return self.forwarding.decide(anchors, strategy)
        return self.forwarding.decide_in_order(anchors, strategy, unsettled, self._directions)

    def _hybrid(self, now_s: float) -> ForwardingStrategy:
        settings = self.settings
        used = self.output_utilisation(now_s)
        margin = -settings.margin if self._is_busy else settings.margin
        self._is_busy = used > settings.threshold + margin
        return ForwardingStrategy.S1 if self._is_busy else ForwardingStrategy.S2

    def detour(self, publication: Publication, lost: Neighbour) -> list[Neighbour]:
        """Where a copy goes that was sent over a soft link which has failed."""
        anchors = self.forwarding.beyond(self._table.wanting(publication)[0], lost.name)
        fwd = self._fwd(publication, anchors, 0.0)
        if fwd is None:
            fwd = self.forwarding.decide(anchors, ForwardingStrategy.S0)
        links = [link for link in self.forwarding.links(fwd) if link != lost]
        self.copies.send(publication.publisher, links)
        return links

    # -- subscriptions -------------------------------------------------------------------------

    def _make_link(self, neighbour: Neighbour, kind: LinkKind) -> Link:
        return Link(neighbour, kind, anchor_of=self._anchor_of)

    def _anchor_of(self, entry: SubscriptionEntry, neighbour: Neighbour) -> str:
        here = entry.toward.name if isinstance(entry.toward, Neighbour) else self._broker
        return anchor_for_neighbour(self.mom, here)

    def _send(self, neighbour: Neighbour, entry: SubscriptionEntry) -> Send:
        anchor = self._links[neighbour].anchor(entry)
        return Send(neighbour, replace(entry.subscription, anchor=anchor))

    def _toward(self, subscription: Subscription, last_hop: Hop) -> Hop:
        """The anchor, if it is where it can be (X1)."""
        if not isinstance(last_hop, Neighbour):
            return last_hop
        is_known = self.mom.directions.get(subscription.anchor) == last_hop.name
        return Neighbour(subscription.anchor, self._lane) if is_known else last_hop

    def _on_subscription(self, subscription: Subscription, last_hop: Hop) -> Answers:
        known = self._interests.get(subscription.id)
        if known is not None and known.last_hop == last_hop:
            toward = self._toward(subscription, last_hop)
            if toward != known.toward:
                self._interests.turn(known, toward)
        return super()._on_subscription(subscription, last_hop)

    # -- messages ------------------------------------------------------------------------------

    def handle(self, message: RoutingMessage, last_hop: Hop) -> Answers:
        self._matched = None
        if isinstance(message, Sweep) and not isinstance(last_hop, Neighbour):
            return self._counted(self._begin_sweep(message, last_hop))
        return self._counted(super().handle(message, last_hop))

    def _counted(self, answers: Answers) -> Answers:
        for answer in answers:
            if isinstance(answer, Send) and isinstance(answer.message, Sweep):
                self.copies.count(answer.to)
        return answers

    def receive(self, message: MeshMessage, neighbour: Neighbour) -> Answers:
        """A message of another broker of the mesh."""
        if isinstance(message, Neighbourhood):
            if neighbour not in self._links:
                return []
            return self._on_map() if self.mom.hear(neighbour.name, message.brokers) else []
        if isinstance(message, QuiescenceWave):
            if neighbour not in self._links:
                return []
            answers: Answers = [*self._quiescence.receive(message, neighbour, self._links)]
            return answers + self._end_sweeps()
        answers = self.soft_links.receive(message, neighbour)
        self._rebuild()
        return answers

    def acknowledged(self, neighbour: Neighbour, position: int) -> Answers:
        """A neighbour, and all behind it, have so many of the copies that it was sent."""
        self.copies.acknowledge(neighbour, position)
        return self._settled([neighbour])

    def _settled(self, links: Iterable[Neighbour]) -> Answers:
        """Do what waited for copies to be settled."""
        answers: Answers = []
        for each in [each for each in self._pausing if self.copies.has_settled(each[0])]:
            self._pausing.remove(each)
            answers.append(each[1])
        answers += self._quiescence.go_on()
        answers += self._end_sweeps()
        return answers + self.soft_links.go_on(links)

    # -- clients that move ---------------------------------------------------------------------

    def pause(self, client: LocalClient, move: int) -> Answers:
        """Confirm when all that the client has published is with its subscribers."""
        self._pausing.append((self.copies.positions(), Confirm(client, Paused(move=move))))
        return self._settled(())

    def _begin_sweep(self, sweep: Sweep, last_hop: Hop) -> Answers:
        self._wave_count += 1
        id = f"{self._broker}#{self._wave_count}#{sweep.client}#{sweep.move}"[:256]
        self._sweeping[id] = sweep, last_hop
        return [*self._quiescence.begin(id, self._links), *self._end_sweeps()]

    def _end_sweeps(self) -> Answers:
        """Send sweeps whose waves are back: they go to the old broker as in a tree."""
        over, self._quiescence.over = self._quiescence.over, []
        answers: Answers = []
        for id in over:
            sweep, last_hop = self._sweeping.pop(id)
            answers += self._counted(super().handle(sweep, last_hop))
        return answers

    # -- links ---------------------------------------------------------------------------------

    def start(self, address: str) -> Answers:
        """Tell the neighbours that have started together with this broker."""
        self.mom.address = address
        return self._tell_neighbourhood()

    def link_up(self, neighbour: Neighbour, kind: LinkKind = LinkKind.PRIMARY) -> Answers:
        if kind is LinkKind.SOFT:
            answers = self.soft_links.link_up(neighbour)
            self._rebuild()
            return answers
        self.mom.add(neighbour.name)
        before = self._with_map(neighbour)
        return [*before, *self._counted(super().link_up(neighbour, kind)), *self._on_map()]

    def _with_map(self, neighbour: Neighbour) -> Answers:
        """The neighbourhood comes before the anchors that are in it."""
        if self._is_recovering:
            return []
        view = self._views[neighbour] = Neighbourhood(brokers=self.mom.view_for(neighbour.name))
        return [Send(neighbour, view)]

    def link_restarted(self, neighbour: Neighbour) -> Answers:
        if neighbour in self.soft_links.links:
            answers = self.soft_links.link_up(neighbour)
            self._rebuild()
            return answers
        before = self._with_map(neighbour)
        return [*before, *self._counted(super().link_restarted(neighbour))]

    def link_down(self, neighbour: Neighbour) -> Answers:
        self._matched = None
        self.copies.close(neighbour)
        self._directions.pop(neighbour, None)
        if neighbour in self.soft_links.links:
            answers = self.soft_links.link_down(neighbour)
            self._rebuild()
            return [*answers, *self._settled(())]
        self._views.pop(neighbour, None)
        self.mom.forget(neighbour.name)
        answers = self._counted(super().link_down(neighbour))
        answers += self._quiescence.link_down(neighbour)
        return [*answers, *self._on_map(), *self._settled(())]

    def link_away(self, neighbour: Neighbour, *, is_away: bool) -> None:
        """A soft link whose connection is lost is not used until there is one again."""
        end = self.soft_links.links.get(neighbour)
        if end is not None:
            end.is_away = is_away
            self._rebuild()

    def recovered(self) -> Answers:
        answers = super().recovered()
        return [*self._tell_neighbourhood(), *answers]

    def change_settings(self, settings: MeshSettings) -> None:
        """Strategy, order and thresholds change at once; the map stays as it is."""
        assert settings.delta == self.settings.delta, "brokers have told maps of the old delta"
        self.settings = settings
        self._keeps_order = settings.keeps_order

    def want_soft_links(self, brokers: Iterable[str]) -> Answers:
        """The soft links that a policy wants; what cannot be one is left out (X3)."""
        primary = {link.name for link in self._links}
        known = [each for each in brokers if each in self.mom and each != self._broker]
        wanted = {each: self.mom.addresses[each] for each in known if each not in primary}
        answers = self.soft_links.want(wanted)
        self._rebuild()
        return answers

    def _on_map(self) -> Answers:
        """The map has changed: adapt what depends on it, and tell the neighbours."""
        for entry in list(self._interests):
            toward = entry.toward
            if isinstance(toward, Neighbour) and toward != entry.last_hop:
                direction = self.mom.directions.get(toward.name)
                if direction != entry.last_hop.name:
                    self._interests.turn(entry, entry.last_hop)  # X1
        gone = [each for each in self.soft_links.wanted if each not in self.mom]
        for broker in gone:
            self.soft_links.give_up(broker)
        answers = self.soft_links.go_on(self.soft_links.links) if gone else []
        self.traffic.clear()
        self._positions.keep(self._table.anchors().union(self.mom.distances))
        self._rebuild()
        return [*answers, *self._tell_neighbourhood()]

    def _tell_neighbourhood(self) -> Answers:
        """Tell neighbours what has changed for them (X2)."""
        if self._is_recovering:
            return []
        answers: Answers = []
        for neighbour in self._links:
            view = Neighbourhood(brokers=self.mom.view_for(neighbour.name))
            if self._views.get(neighbour) != view:
                self._views[neighbour] = view
                answers.append(Send(neighbour, view))
        return answers

    def _rebuild(self) -> None:
        """The links or the map have changed."""
        self._matched = None
        self.forwarding = Forwarding(self.mom, self._linked(), self._lane, self._positions)
        self._directions |= {
            link: self.mom.directions[link.name] for link in self.forwarding.every_link
        }

    # -- what others may see -------------------------------------------------------------------

    def take_traffic(self) -> list[tuple[list[str], int]]:
        """The sets of anchors of the publications since the last time, and how often each came."""
        found = [(self._positions.names(anchors), n) for anchors, n in self.traffic.items()]
        self.traffic.clear()
        return found

    def working_subscriptions(self) -> dict[str, list[Filter]]:
        """The paper's WST: filters, by the linked broker that stands for their anchor."""
        found: dict[str, list[Filter]] = {}
        substitutes, brokers = self.forwarding.wom.substitutes, self.forwarding.wom.brokers
        for entry in self._interests:
            if isinstance(entry.toward, Neighbour) and not entry.is_control:
                link = brokers[substitutes[entry.toward.name].bit_length() - 1]
                found.setdefault(link, []).append(entry.subscription.filter)
        return found

    def check(self) -> None:
        """Assert what a tree asserts, and X1 to X3."""
        super().check()
        for entry in self._interests:
            toward = entry.toward
            if isinstance(toward, Neighbour):
                direction = self.mom.directions.get(toward.name)
                assert direction == entry.last_hop.name, f"X1: {entry.subscription.id} at {toward}"
        primary = {link.name for link in self._links}
        for link in self._links if not self._is_recovering else ():
            view = Neighbourhood(brokers=self.mom.view_for(link.name))
            assert self._views.get(link, view) == view, f"X2: {link.name} was told something else"
        for broker in self.soft_links.used:
            assert broker in self.mom, f"X3: a soft link with {broker}, which is too far"
            assert broker not in primary, f"X3: a soft link with {broker} beside a primary one"


def _idle(_now_s: float) -> float:
    return 0.0
