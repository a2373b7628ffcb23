"""Load balancers of a whole overlay, without brokers: messages are handed on by hand.

What a module publishes reaches at once every module that subscribed to it, unless it is lost or the
receiver is dead; timers fire in order; loads are what the test says they are.  `story` has every
message, decision, request to move and change of status as a line of text: tests compare all of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random

from godwit.broker.core import Broker
from godwit.broker.effects import Decision
from godwit.broker.meters import IDLE, Load, Meters
from godwit.broker.modules import AskToMove, BrokerView, Request, Timer
from godwit.broker.routing import Place
from godwit.broker.stimuli import Hop, LinkDown, LinkUp, LocalClient, Neighbour, Received
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Publication,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Unadvertisement,
    Unsubscription,
)
from godwit.overlay.topology import Topology, peer
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.offload_module import Offload
from godwit.policies.offload.press import Sampled
from godwit.policies.offload.report_cards import OffloadPlan
from godwit.policies.offload.settings import BalancingSettings

STAR = peer(clusters=1, edges=3)
QUOTES = Filter.parse("class = 'STOCK'")


class FixedMeters(Meters):
    """A new window whenever it is asked for, with the load that a test has set."""

    __slots__ = ("now",)

    def __init__(self) -> None:
        super().__init__(output_bandwidth_bytes_s=1000.0)
        self.now = replace(IDLE, window_s=10.0)

    def load(self, now_s: float) -> Load:
        return replace(self.now)


class Scene:
    def __init__(
        self,
        topology: Topology = STAR,
        settings: BalancingSettings | None = None,
        *,
        quiet: Sequence[str] = ("PIE",),
    ) -> None:
        """Lines that contain one of the words `quiet` are left out of the story."""
        self.settings = settings or BalancingSettings()
        self.topology = topology
        self.now_s = 0.0
        self.story: list[str] = []
        self.dead: set[str] = set()
        self.loses: Callable[[str, str, str], bool] = lambda _sender, _to, _kind: False
        """Which messages of mediation get lost: by sender, receiver and kind."""
        self.plans: dict[str, tuple[str, ...]] = {}
        """The clients that each offloader chooses."""
        self.planned_in_overload = 1_000
        """How many of them it takes to end an overload."""
        self.published: list[tuple[str, Publication]] = []
        self.decisions: list[Decision] = []
        self.moves: list[tuple[str, AskToMove]] = []
        self.submitted: dict[str, list[Request]] = {name: [] for name in topology.brokers}
        self.timers: list[tuple[float, int, str, Timer]] = []
        self._quiet = tuple(quiet)
        self._serial = 0
        self._post: deque[tuple[str, Publication]] = deque()
        self._is_delivering = False
        self.is_held = False
        """Whether messages are on their way, and arrive only with `deliver`."""
        self._subscriptions: dict[str, dict[SubscriptionId, Filter]] = {}
        self._statuses: dict[str, str] = {}
        self.brokers: dict[str, Broker] = {}
        self.modules: dict[str, Offload] = {}
        for name in topology.brokers:
            self._make(name, topology.neighbours(name))
        for name in topology.brokers:
            self._start(name)

    def _make(self, name: str, neighbours: Iterable[str]) -> None:
        routing = TreeRouting(Place.of(name, neighbours))
        self.brokers[name] = Broker(name, routing=routing, meters=FixedMeters())
        random = Random(f"{len(self.published)} {name}")
        self.modules[name] = Offload(random, self.settings, planner=self.plan)

    def _start(self, name: str) -> None:
        view = BrokerView(self.brokers[name], f"${name}.offload")
        self._take(name, self.modules[name].start(view, self.now_s))

    # -- what a test arranges ------------------------------------------------------------------

    def load(
        self,
        broker: str,
        *,
        input: float = 0.0,
        match_s: float = 0.001,
        output: float = 0.0,
    ) -> None:
        """Set the load that the meters of a broker show from now on."""
        meters = self.brokers[broker].meters
        assert isinstance(meters, FixedMeters)
        meters.now = Load(
            window_s=10.0,
            publications_per_s=input / match_s,
            messages_in_per_s=input / match_s + 1,
            bytes_in_per_s=0.0,
            messages_out_per_s=0.0,
            bytes_out_per_s=output * 1000.0,
            matching_delay_s=match_s,
            input_utilisation=input,
            output_utilisation=output,
        )

    def subscriber(self, name: str, at: str) -> None:
        subscription = Subscription(id=SubscriptionId(f"{name}/s"), filter=QUOTES)
        received = Received(subscription, LocalClient(name))
        self.brokers[at].handle(received, now_s=self.now_s)

    def link(self, a: str, b: str) -> None:
        for one, other in ((a, b), (b, a)):
            self.brokers[one].handle(LinkUp(Neighbour(other)), now_s=self.now_s)

    def unlink(self, a: str, b: str) -> None:
        for one, other in ((a, b), (b, a)):
            self.brokers[one].handle(LinkDown(Neighbour(other)), now_s=self.now_s)

    def crash(self, broker: str) -> None:
        self.dead.add(broker)
        self.timers = [each for each in self.timers if each[2] != broker]
        self._subscriptions.pop(broker, None)

    def restart(self, broker: str) -> None:
        """The broker is back, with nothing."""
        self.dead.discard(broker)
        self._make(broker, self.topology.neighbours(broker))
        self._start(broker)

    # -- what happens --------------------------------------------------------------------------

    def plan(
        self,
        action: OffloadAction,
        local: BrokerInfo,
        remote: BrokerInfo,
        remote_css: Sequence[Filter],
        sampled: Sampled,
        settings: BalancingSettings,
        *,
        overloaded: bool,
        random: Random,
    ) -> OffloadPlan:
        """Not an algorithm: what the test says, as if each client were a tenth of the output."""
        clients = self.plans.get(local.broker, ())
        if overloaded:
            clients = clients[: self.planned_in_overload]
        share = 0.1 * len(clients)
        wanted = 0.2 * len(self.plans.get(local.broker, ()))
        moved = share * local.output_total_bytes_s
        return OffloadPlan(
            action,
            clients,
            local,
            remote,
            replace(local, output_used_bytes_s=local.output_used_bytes_s - moved),
            replace(remote, output_used_bytes_s=remote.output_used_bytes_s + moved),
            wanted,
            wanted - 2 * share,
            "as the test says",
        )

    def wait(self, seconds: float) -> list[str]:
        """Let time pass; timers fire in order.  Returns the story of that time."""
        return self.wait_until(self.now_s + seconds)

    def wait_until(self, until_s: float) -> list[str]:
        before = len(self.story)
        while self.timers and min(self.timers)[0] <= until_s:
            due = min(self.timers)
            self.timers.remove(due)
            at_s, _, broker, timer = due
            self.now_s = max(self.now_s, at_s)
            self._take(broker, self.modules[broker].on_timer(timer.name, self.now_s))
        self.now_s = until_s
        return self.story[before:]

    def sample(self, broker: str, publications: int, to: Sequence[str] = ()) -> list[str]:
        """So many publications pass a broker that samples, and reach these clients."""
        before = len(self.story)
        destinations: list[Hop] = [LocalClient(name) for name in to]
        for number in range(publications):
            module = self.modules[broker]
            if not module.is_watching:
                break
            self.now_s += 0.1
            publication = Publication(
                publisher="paul",
                sequence=number,
                advertisement=AdvertisementId("paul/a"),
                content={"class": "STOCK"},
                size_bytes=10,
            )
            head = Neighbour(self.topology.neighbours(broker)[0])
            requests = module.on_publication(publication, head, destinations, self.now_s)
            self._take(broker, requests)
        return self.story[before:]

    def arrive(self, client: str, at: str, *, session: str | None = None) -> list[str]:
        """A client that was asked to move arrives, and leaves its old broker."""
        before = len(self.story)
        source, ask = next(each for each in self.moves if each[1].client == client)
        arrived = ask.session if session is None else session
        self._take(at, self.modules[at].on_arrived(client, arrived, self.now_s))
        self._take(source, self.modules[source].on_departed(client, self.now_s))
        return self.story[before:]

    def close(self, client: str, at: str) -> list[str]:
        """A client leaves its broker, and this broker does not know why."""
        before = len(self.story)
        self._take(at, self.modules[at].on_departed(client, self.now_s))
        return self.story[before:]

    def command(self, broker: str, command: str) -> list[str]:
        before = len(self.story)
        self._take(broker, self.modules[broker].on_command(command, self.now_s))
        return self.story[before:]

    def status(self, broker: str) -> str:
        return str(self.modules[broker].account(self.now_s).get("status", "none"))

    # -- effects -------------------------------------------------------------------------------

    def _say(self, line: str) -> None:
        if not any(word in line for word in self._quiet):
            self.story.append(line)

    def _take(self, broker: str, requests: Iterable[Request]) -> None:
        """Carry out requests, then what they cause, in order."""
        self._carry_out(broker, requests)
        self.deliver()

    def deliver(self) -> None:
        """Hand on what was published, unless it is held."""
        while self._post and not self._is_delivering and not self.is_held:
            self._is_delivering = True
            to, publication = self._post.popleft()
            if to not in self.dead:
                self._carry_out(to, self.modules[to].on_delivery(publication, self.now_s))
            self._is_delivering = False

    def _carry_out(self, broker: str, requests: Iterable[Request]) -> None:
        for request in requests:
            self.submitted[broker].append(request)
            match request:
                case Timer(at_s=at_s):
                    self._serial += 1
                    self.timers.append((at_s, self._serial, broker, request))
                case Publication():
                    self._hand_on(broker, request)
                case Subscription(id=subscription, filter=filter):
                    self._subscriptions.setdefault(broker, {})[subscription] = filter
                    notice = SubscriptionInEffect(id=subscription)
                    self._take(broker, self.modules[broker].on_in_effect(notice, self.now_s))
                case Unsubscription(id=subscription):
                    del self._subscriptions[broker][subscription]
                case Advertisement(id=advertisement):
                    in_effect = AdvertisementInEffect(id=advertisement)
                    self._take(broker, self.modules[broker].on_in_effect(in_effect, self.now_s))
                case Unadvertisement():
                    pass
                case Decision():
                    self.decisions.append(request)
                    because = request.reason.get("because", "")
                    self._say(f"{broker} reports {request.action} {because}".rstrip())
                case AskToMove(client=client, target=target):
                    self.moves.append((broker, request))
                    self._say(f"{broker} asks {client} to move to {target}")
                case _:
                    raise AssertionError(f"unexpected {request}")
        self._look_at_status(broker)

    def _look_at_status(self, broker: str) -> None:
        status = self.status(broker)
        if status not in ("none", self._statuses.setdefault(broker, "OK")):
            self._statuses[broker] = status
            self._say(f"{broker} is {status}")

    def _hand_on(self, sender: str, publication: Publication) -> None:
        self.published.append((sender, publication))
        content = publication.content
        kind, to = str(content.get("kind", content["class"])), str(content.get("to", "all"))
        is_lost = self.loses(sender, to, kind)
        lost = " (lost)" if is_lost else ""
        self._say(f"{sender} -> {to}: {kind.strip('$')}{lost}")
        if is_lost:
            return
        for broker, filters in list(self._subscriptions.items()):
            if broker == sender or broker in self.dead:
                continue
            if self._too_far(sender, broker, publication):
                continue
            if any(filter.matches_checked(content) for filter in filters.values()):
                self._post.append((broker, publication))

    def _too_far(self, sender: str, broker: str, publication: Publication) -> bool:
        hops = publication.ttl_hops
        return hops is not None and self.topology.distances(sender)[broker] > hops
