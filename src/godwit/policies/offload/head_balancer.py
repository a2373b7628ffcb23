"""The load balancer of a cluster-head: the load of its cluster, and global sessions with others.

Paper    Cheung, thesis 4.1.3, "Global Detection Algorithm", figure 4.6; global PIE.

    its edge brokers' LOCAL_PIE --> means --> GLOBAL_PIE, one cluster hop far
    GLOBAL_PIE of other clusters --> detection, every 50 to 70 s --> a global session
    requests of edge brokers that are overloaded --> at the third: a global session

Departs  1. A cluster is N/A if one of its edge brokers is.  It starts no global session because of
            an imbalance then, so that local balancing gets its chance first; an overload and
            requests of edge brokers still do.
         2. The count of requests starts again with a global session, and when no edge broker is
            N/A (open).
         3. A head without edge brokers publishes nothing of its own; what it hears it publishes
            once more, as the thesis says: one extra hop, to all its neighbours.
         4. A pair of clusters between which, or in which, no client moved in a global session is
            blocked, as in holds.py.
         5. Heads are asked in the order of the list until one agrees, as edge brokers are.
Tested   tests/policies/offload/test_global_mediation.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from random import Random

from godwit.broker.modules import BrokerView, Request
from godwit.content.filters import Filter
from godwit.policies.offload import detection
from godwit.policies.offload.adaptive_pie import METRICS, AdaptiveBounds, plain_filter
from godwit.policies.offload.alarms import Alarms
from godwit.policies.offload.broker_load import OffloadAction
from godwit.policies.offload.control_post import ControlPost
from godwit.policies.offload.detection import Candidate, Triggers
from godwit.policies.offload.global_mediation import GLOBAL_ALARMS, GlobalMediator
from godwit.policies.offload.holds import BlockedPairs
from godwit.policies.offload.load_status import (
    HEAD_TRANSITIONS,
    LoadStatus,
    StatusEvent,
    StatusMachine,
)
from godwit.policies.offload.mediation_messages import EdgeRequest, MediationMessage
from godwit.policies.offload.pie import (
    GLOBAL_PIE,
    LOCAL_PIE,
    KnownBrokers,
    Pie,
    PieDetails,
    PieRule,
    PieValues,
    pie_account,
)
from godwit.policies.offload.settings import BalancingSettings

GLOBAL_PERIOD, WELCOME = "global-period", "welcome"
WELCOME_S = 2.0
CLUSTER_PIE, EDGES, OTHER_EDGES, CLUSTERS = "cluster", "edges", "other-edges", "clusters"
#: Where a PIE was published again; empty if it comes from its own cluster.
VIA = "via"


class HeadBalancer:
    def __init__(
        self,
        view: BrokerView,
        settings: BalancingSettings,
        random: Random,
        post: ControlPost,
        alarms: Alarms,
    ) -> None:
        self.edges = KnownBrokers(period_s=settings.local_pie_period_s, settings=settings)
        self.clusters = KnownBrokers(period_s=settings.global_pie_period_s, settings=settings)
        self.requests = 0
        """Requests of overloaded edge brokers."""
        self._broker = view.broker
        self._settings = settings
        self._random = random
        self._post = post
        self._alarms = alarms
        self._status = StatusMachine(HEAD_TRANSITIONS)
        self._rule = PieRule(settings)
        self._triggers = Triggers.global_of(settings)
        self._pairs = BlockedPairs()
        self._gave_way = 0
        self._asked_for: Candidate | None = None
        self._waiting: deque[Candidate] = deque()
        """Clusters that are asked next, if those before them do not agree."""
        self.mediator = GlobalMediator(
            view.broker,
            settings,
            random,
            post,
            alarms,
            self._status,
            edges=lambda: self._own,
            has_high_edges=self._has_high_edges,
        )
        self._bounds: AdaptiveBounds | None = None
        if settings.pie == "adaptive":
            self._bounds = AdaptiveBounds(
                ratio_trigger=settings.global_ratio_trigger,
                delay_trigger=settings.global_delay_trigger,
                normalization_s=settings.delay_normalization_s,
                history=settings.pie_history,
            )

    @property
    def _own(self) -> list[Pie]:
        return self.edges.of_cluster(self._broker)

    def _own_names(self) -> list[str]:
        return [pie.broker for pie in self._own]

    def _has_high_edges(self) -> bool:
        return any(pie.status is LoadStatus.NOT_AVAILABLE for pie in self._own)

    # -- beginning and end ---------------------------------------------------------------------

    def start(self, now_s: float) -> list[Request]:
        advertisement = Filter.parse(
            f"class = '{GLOBAL_PIE}' and cluster is a string and brokerId is a string"
            f" and status is a string and input is a number and match is a number"
            f" and output is a number and {VIA} is a string"
        )
        return [
            *self._post.advertise(CLUSTER_PIE, advertisement),
            *self._post.subscribe(EDGES, plain_filter(LOCAL_PIE, self._broker)),
            *self._subscribe_to_clusters(),
            self._alarms.set(GLOBAL_PERIOD, now_s + self._settings.global_pie_period_s),
        ]

    def stop(self, now_s: float) -> list[Request]:
        """The broker is not a head any longer."""
        requests = self.mediator.end("the broker has another role now")
        words = [EDGES, OTHER_EDGES, CLUSTERS, *map(_word, METRICS)]
        for word in words:
            requests += self._post.unsubscribe(word)
        return [*requests, *self._post.unadvertise(CLUSTER_PIE)]

    def _subscribe_to_clusters(self, metrics: Sequence[OffloadAction] = METRICS) -> list[Request]:
        """All loads, or three bounded ones; a head that forwards needs all."""
        if self._bounds is None or not self._own:
            if CLUSTERS in self._post.subscribed():
                return []
            return self._post.subscribe(CLUSTERS, Filter.parse(f"class = '{GLOBAL_PIE}'"))
        requests: list[Request] = []
        for metric in metrics:
            bound = self._bounds.bounds[metric]
            filter = Filter.parse(f"class = '{GLOBAL_PIE}' and {metric.value} < {bound!r}")
            requests += self._post.subscribe(_word(metric), filter)
        return [*requests, *self._post.unsubscribe(CLUSTERS)]

    # -- what happens --------------------------------------------------------------------------

    def on_in_effect(self, word: str | None, now_s: float) -> list[Request]:
        return self._publish() if word == CLUSTER_PIE else []

    def on_pie(self, pie: Pie, kind: str, via: str, now_s: float) -> list[Request]:
        if kind == LOCAL_PIE:
            if pie.cluster not in (self._broker, self.mediator.other_cluster):
                return []
            is_new = self.edges.hear(pie, now_s)
            requests = self._with_news([])
            return [*requests, *self.mediator.on_new_edge(pie)] if is_new else requests
        if pie.broker == self._broker:
            return []
        if not self._own:
            return self._forward(pie) if not via else []
        is_new = self.clusters.hear(pie, now_s)
        if not is_new or self._alarms.is_set(WELCOME):
            return []
        return [self._alarms.set(WELCOME, now_s + self._random.uniform(0.0, WELCOME_S))]

    def _forward(self, pie: Pie) -> list[Request]:
        content = {**pie.content(GLOBAL_PIE), VIA: self._broker}
        return self._post.publish(CLUSTER_PIE, content, pie.payload(), ttl_hops=1)

    def on_message(self, sender: str, message: MediationMessage, now_s: float) -> list[Request]:
        if not isinstance(message, EdgeRequest):
            found = self.mediator.on_message(sender, message, now_s)
            return self._with_news([*found, *self._ask_next(now_s)])
        if sender not in self._own_names():
            return []
        self.requests += 1
        if self.requests < self._settings.global_request_limit:
            return []
        return self._with_news(self._look_for_a_cluster(now_s))

    def on_part(self, sender: str, now_s: float) -> list[Request]:
        return []  # Messages between heads are short.

    def abort(self, now_s: float) -> list[Request]:
        self._waiting.clear()
        return self._with_news(self.mediator.end("an operator has aborted it"))

    def on_paused(self, now_s: float, *, is_paused: bool) -> list[Request]:
        self.mediator.is_paused = is_paused
        return self._with_news([])

    def on_alarm(self, purpose: str, now_s: float) -> list[Request]:
        if purpose in GLOBAL_ALARMS:
            found = self.mediator.on_alarm(purpose, now_s)
            return self._with_news([*found, *self._ask_next(now_s)])
        if purpose == WELCOME:
            return self._publish()
        if purpose != GLOBAL_PERIOD:
            return []
        next_period = now_s + self._settings.global_pie_period_s
        return [self._alarms.set(GLOBAL_PERIOD, next_period), *self._period_over(now_s)]

    # -- PIE -----------------------------------------------------------------------------------

    @property
    def values(self) -> PieValues | None:
        """The means over the cluster; None without edge brokers."""
        own = [pie.values for pie in self._own]
        if not own:
            return None
        return PieValues(
            sum(v.input for v in own) / len(own),
            sum(v.match for v in own) / len(own),
            sum(v.output for v in own) / len(own),
        )

    def _pie(self) -> Pie | None:
        values = self.values
        if values is None:
            return None
        status = self._status.status
        if self.mediator.is_paused and status is LoadStatus.OK:
            status = LoadStatus.BUSY
        balanced = detection.balanced_set(values, self.clusters, self._triggers)
        details = PieDetails(None, balanced=balanced, edges=len(self._own))
        return Pie(self._broker, self._broker, status, values, details)

    def _publish(self) -> list[Request]:
        pie = self._pie()
        if pie is None:
            return []
        content = {**pie.content(GLOBAL_PIE), VIA: ""}
        published = self._post.publish(CLUSTER_PIE, content, pie.payload(), ttl_hops=1)
        if published:
            self._rule.published(pie)
            if self._bounds is not None:
                self._bounds.on_published(pie.values)
        return published

    def _period_over(self, now_s: float) -> list[Request]:
        self._drop_expired(now_s)
        requests = self._renew_bounds()
        pie = self._pie()
        if pie is not None and self._rule.is_due(pie):
            requests += self._publish()
        return requests

    def _renew_bounds(self) -> list[Request]:
        bounds, values = self._bounds, self.values
        if bounds is None:
            return []
        if values is None:
            return self._subscribe_to_clusters()
        changed = bounds.renew(values, self.clusters)
        if CLUSTERS in self._post.subscribed():  # The first edge broker has come.
            changed = list(METRICS)
        requests = self._subscribe_to_clusters(changed) if changed else []
        for pie in self.clusters:
            if not bounds.admits(pie.values):
                self.clusters.forget(pie.broker)
        return requests

    def _drop_expired(self, now_s: float) -> None:
        self.edges.drop_expired(now_s)
        self.clusters.drop_expired(now_s)

    def _with_news(self, requests: list[Request]) -> list[Request]:
        """Add what a change of the cluster entails: its status, its subscriptions, its PIE."""
        self._update_availability()
        requests = [*requests, *self._follow_session()]
        pie = self._pie()
        if pie is not None and self._rule.has_news(pie):
            requests += self._publish()
        return requests

    def _update_availability(self) -> None:
        is_high = self._has_high_edges()
        event = StatusEvent.EXCEEDED if is_high else StatusEvent.RELIEVED
        if self._status.permits(event):
            self._status.apply(event)
        if not is_high:
            self.requests = 0

    def _follow_session(self) -> list[Request]:
        """Hear the other cluster's edge brokers exactly while a global session lasts."""
        other = self.mediator.other_cluster
        is_subscribed = OTHER_EDGES in self._post.subscribed()
        if other is not None and not is_subscribed:
            self.requests = 0
            return self._post.subscribe(OTHER_EDGES, plain_filter(LOCAL_PIE, other))
        if other is None and is_subscribed:
            for pie in self.edges:
                if pie.cluster != self._broker:
                    self.edges.forget(pie.broker)
            return self._post.unsubscribe(OTHER_EDGES)
        return []

    # -- detection -----------------------------------------------------------------------------

    def detect(self, now_s: float) -> list[Request]:
        self._drop_expired(now_s)
        requests = self._with_news([])
        session = self.mediator.session
        if session is not None:
            found = self.mediator.round(list(self.edges), now_s)
            if self.mediator.session is None:
                self._learn(session.sessions)
            return [*requests, *self._with_news(found)]
        return [*requests, *self._with_news(self._look_for_a_cluster(now_s))]

    def _learn(self, sessions: int) -> None:
        asked = self._asked_for
        if asked is None:
            return
        if sessions > 0:
            self._pairs.free(asked.partner)
        else:
            self._pairs.block(asked.partner, asked.action)

    def _look_for_a_cluster(self, now_s: float) -> list[Request]:
        """Request a global session, if there is a reason and a cluster for it."""
        if self.mediator.session is not None or self.mediator.is_paused:
            return []
        self._waiting = deque(self._pairs.next_detection(self._candidates()))
        return self._ask_next(now_s)

    def _ask_next(self, now_s: float) -> list[Request]:
        """Ask the next cluster, if the one before it has refused or is silent.

        A head that refuses does so whatever the metric is: it is asked once.
        """
        session = self.mediator.session
        if self.mediator.is_paused or (session is not None and session.is_running):
            self._waiting.clear()
        if session is not None or not self._waiting:
            return []
        asked = self._asked_for = self._waiting.popleft()
        self._waiting = deque(c for c in self._waiting if c.partner != asked.partner)
        return self.mediator.request(asked.partner, now_s)

    def _candidates(self) -> list[Candidate]:
        values = self.values
        if values is None:
            return []
        is_forced = self.requests >= self._settings.global_request_limit
        high = self._settings.higher_overload_threshold
        if is_forced or max(values.input, values.output) > high:
            anything = Triggers(0.0, 0.0, self._settings.delay_normalization_s)
            return detection.imbalance_candidates(values, self.clusters, anything)
        if self._status.status is not LoadStatus.OK:
            return []
        if detection.gives_way(self.clusters) and self._gave_way < detection.GIVES_WAY_MAX:
            self._gave_way += 1
            return []
        self._gave_way = 0
        return detection.imbalance_candidates(values, self.clusters, self._triggers)

    # -- the operator --------------------------------------------------------------------------

    def account(self, now_s: float) -> Mapping[str, object]:
        """What an operator may want to know."""
        values, session = self.values, self.mediator.session
        return {
            "status": self._status.status.value,
            "load": None
            if values is None
            else {"input": values.input, "match_s": values.match, "output": values.output},
            "edges": [pie_account(pie) for pie in self._own],
            "known": [pie_account(pie) for pie in self.clusters],
            "requests": self.requests,
            "sessions": self.mediator.sessions,
            "session": None
            if session is None
            else {
                "session": session.session,
                "partner": session.partner,
                "phase": "running" if session.is_running else "requesting",
                "rounds": session.rounds,
            },
        }


def _word(metric: OffloadAction) -> str:
    return f"{CLUSTERS}.{metric.value}"
