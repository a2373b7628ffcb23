"""The load balancer as a module of a broker: its role, its messages, its operator.

Paper    Cheung, thesis 4.1, figure 4.1.

The role follows from the links (peer.py).  An edge broker balances its load with others
(edge_balancer.py), a cluster-head the load of its cluster (head_balancer.py).  The module
advertises and subscribes to the messages of mediation, whatever its role, and looks at the role
again before each detection.

    operator    pause, resume       no session begins; one that has begun goes on
                abort               the present session ends; clients that were asked may still move
                dry-run on, off     decide and report, but ask no client to move

Departs  1. A broker that has not been linked with all its configured neighbours yet has no new
            role: a cluster-head whose first link is up would look like an edge broker.
         2. An edge broker refuses advertisements of clients: its load would not be that of its
            subscribers only.  The refusal names the head.
Tested   tests/policies/offload/test_offload_module.py.

W1  Publications pass unseen, except while an offloader samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from godwit.broker.effects import Decision
from godwit.broker.modules import BrokerView, PolicyModule, Request
from godwit.broker.stimuli import Hop
from godwit.content.messages import (
    Advertisement,
    AdvertisementInEffect,
    Publication,
    SubscriptionInEffect,
)
from godwit.errors import UsageError
from godwit.policies.offload.alarms import Alarms
from godwit.policies.offload.control_post import ControlPost
from godwit.policies.offload.edge_balancer import EdgeBalancer
from godwit.policies.offload.edge_context import EdgeContext, Planner
from godwit.policies.offload.head_balancer import VIA, HeadBalancer
from godwit.policies.offload.load_averages import LoadAverages
from godwit.policies.offload.load_status import EDGE_TRANSITIONS, StatusMachine
from godwit.policies.offload.mediation_messages import (
    LB,
    WORD,
    MediationReader,
    lb_advertisement,
    lb_subscription,
)
from godwit.policies.offload.peer import PeerPlace, Role, place_of
from godwit.policies.offload.pie import read_pie
from godwit.policies.offload.settings import BalancingSettings

DETECT = "detect"
#: How often a broker without a role looks for one.
ROLE_S = 5.0
#: Decisions that an operator is shown.
DECISIONS_KEPT = 50
COMMANDS = ("pause", "resume", "abort", "dry-run on", "dry-run off")


class Offload(PolicyModule):
    name = "offload"

    def __init__(
        self, random: Random, settings: BalancingSettings | None = None, *, planner: Planner
    ) -> None:
        self.is_watching = False  # W1
        self._settings = settings or BalancingSettings()
        self._random = random
        self._planner = planner
        self._alarms = Alarms()
        self._reader = MediationReader()
        self._place: PeerPlace | None = None
        self._balancer: EdgeBalancer | HeadBalancer | None = None
        self._is_paused = False
        self._dry_run = self._settings.dry_run
        self._decisions: deque[tuple[float, Decision]] = deque(maxlen=DECISIONS_KEPT)

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self._view = view
        incarnation = f"{int(now_s * 1000):x}{self._random.getrandbits(24):06x}"
        self._post = ControlPost(view.owner, incarnation)
        return self._issued(
            [
                *self._post.advertise(WORD, lb_advertisement(view.broker)),
                *self._post.subscribe(WORD, lb_subscription(view.broker)),
                *self._find_role(now_s),
                self._next_detection(now_s),
            ],
            now_s,
        )

    # -- the role ------------------------------------------------------------------------------

    def _find_role(self, now_s: float) -> list[Request]:
        """Change the role if the links have changed."""
        view = self._view
        if not view.has_all_links:
            return []
        has_publishers = next(view.publishers(), None) is not None
        place = place_of(view.broker, view.neighbours, has_publishers=has_publishers)
        if place == self._place:
            return []
        requests: list[Request] = []
        if self._balancer is not None:
            requests += self._balancer.stop(now_s)
        self._alarms.cancel_all()
        self.is_watching = False
        self._place = place
        self._balancer = None if place is None else self._make_balancer(place)
        return requests if self._balancer is None else [*requests, *self._balancer.start(now_s)]

    def _make_balancer(self, place: PeerPlace) -> EdgeBalancer | HeadBalancer:
        if place.role is Role.HEAD:
            head = HeadBalancer(self._view, self._settings, self._random, self._post, self._alarms)
            head.mediator.is_paused = self._is_paused
            return head
        over_s = (self._settings.local_detection_min_s + self._settings.local_detection_max_s) / 2
        context = EdgeContext(
            view=self._view,
            settings=self._settings,
            random=self._random,
            post=self._post,
            alarms=self._alarms,
            status=StatusMachine(EDGE_TRANSITIONS),
            averages=LoadAverages(self._view, over_s=over_s),
            planner=self._planner,
            watch=self._watch,
            dry_run=self._dry_run,
        )
        edge = EdgeBalancer(context, place.cluster)
        edge.mediator.is_paused = self._is_paused
        return edge

    def _watch(self, is_watching: bool) -> None:
        self.is_watching = is_watching

    def _next_detection(self, now_s: float) -> Request:
        settings = self._settings
        if self._place is None:
            return self._alarms.set(DETECT, now_s + ROLE_S)
        if self._place.role is Role.HEAD:
            wait_s = self._random.uniform(
                settings.global_detection_min_s, settings.global_detection_max_s
            )
        else:
            wait_s = self._random.uniform(
                settings.local_detection_min_s, settings.local_detection_max_s
            )
        return self._alarms.set(DETECT, now_s + wait_s)

    def refuses(self, advertisement: Advertisement, client: str) -> str | None:
        place = self._place
        if place is None or place.role is Role.HEAD:
            return None
        return (
            f"broker {self._view.broker} is an edge broker of cluster {place.cluster}, which serves"
            f" subscribers only; publish at broker {place.cluster}"
        )

    # -- what happens --------------------------------------------------------------------------

    def on_in_effect(
        self, notice: AdvertisementInEffect | SubscriptionInEffect, now_s: float
    ) -> Iterable[Request]:
        word = self._post.on_in_effect(notice)
        balancer = self._balancer
        return [] if balancer is None else self._issued(balancer.on_in_effect(word, now_s), now_s)

    def on_delivery(self, publication: Publication, now_s: float) -> Iterable[Request]:
        balancer = self._balancer
        if publication.content.get("class") == LB:
            sender, message = self._reader.read(publication)
            if balancer is None:
                return []
            if message is None:
                return self._issued(balancer.on_part(sender, now_s), now_s)
            return self._issued(balancer.on_message(sender, message, now_s), now_s)
        pie = read_pie(publication)
        if balancer is None or pie is None:
            return []
        content = publication.content
        kind, via = str(content["class"]), str(content.get(VIA, ""))
        return self._issued(balancer.on_pie(pie, kind, via, now_s), now_s)

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        balancer = self._balancer
        if not isinstance(balancer, EdgeBalancer):
            return []
        return self._issued(balancer.on_publication(publication, destinations, now_s), now_s)

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        purpose = self._alarms.due(name)
        if purpose is None:
            return []
        if purpose != DETECT:
            balancer = self._balancer
            return (
                [] if balancer is None else self._issued(balancer.on_alarm(purpose, now_s), now_s)
            )
        requests = self._find_role(now_s)
        if self._balancer is not None and not requests:
            requests = self._balancer.detect(now_s)
        return self._issued([*requests, self._next_detection(now_s)], now_s)

    def on_arrived(self, client: str, session: str, now_s: float) -> Iterable[Request]:
        balancer = self._balancer
        if not isinstance(balancer, EdgeBalancer):
            return []
        return self._issued(balancer.on_arrived(client, session, now_s), now_s)

    def on_departed(self, client: str, now_s: float) -> Iterable[Request]:
        balancer = self._balancer
        if not isinstance(balancer, EdgeBalancer):
            return []
        return self._issued(balancer.on_departed(client, now_s), now_s)

    @property
    def session(self) -> tuple[str, str] | None:
        """The partner and the phase of the present session, if there is one."""
        balancer = self._balancer
        if not isinstance(balancer, EdgeBalancer) or balancer.mediator.session is None:
            return None
        session = balancer.mediator.session
        return session.partner, session.phase.value

    @property
    def decisions(self) -> list[Decision]:
        """The last ones."""
        return [decision for _, decision in self._decisions]

    # -- the operator --------------------------------------------------------------------------

    def on_command(self, command: str, now_s: float) -> Iterable[Request]:
        balancer = self._balancer
        match command:
            case "pause" | "resume":
                self._is_paused = command == "pause"
                paused = self._is_paused
                found = [] if balancer is None else balancer.on_paused(now_s, is_paused=paused)
            case "abort":
                found = [] if balancer is None else balancer.abort(now_s)
            case "dry-run on" | "dry-run off":
                self._dry_run = command == "dry-run on"
                if isinstance(balancer, EdgeBalancer):
                    balancer.set_dry_run(self._dry_run)
                found = []
            case _:
                raise UsageError(
                    f"the load balancer knows no command {command!r}; use {', '.join(COMMANDS)}"
                )
        return self._issued(found, now_s)

    def account(self, now_s: float) -> Mapping[str, object]:
        place = self._place
        account: dict[str, object] = {
            "broker": self._view.broker,
            "role": "none" if place is None else place.role.value,
            "cluster": None if place is None else place.cluster,
            "is_paused": self._is_paused,
            "dry_run": self._dry_run,
        }
        if self._balancer is not None:
            account |= self._balancer.account(now_s)
        account["decisions"] = [
            {
                "at_s": at_s,
                "action": decision.action,
                "subject": decision.subject,
                "source": decision.source,
                "target": decision.target,
                "reason": dict(decision.reason),
            }
            for at_s, decision in self._decisions
        ]
        return account

    def _issued(self, requests: list[Request], now_s: float) -> list[Request]:
        """Number the publications among the requests, and keep the decisions for `account`."""
        for request in requests:
            if isinstance(request, Decision):
                self._decisions.append((now_s, request))
        return self._post.numbered(requests)
