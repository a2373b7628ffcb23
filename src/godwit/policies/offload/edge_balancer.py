"""The load balancer of an edge broker: PIE, detection, mediation and what follows a session.

Paper    Cheung, thesis 4.1, figure 4.1: Load Detector and Mediator.

    every window of the meters      the load is read
    every local PIE period          the load is published, if it has changed; the bounds of
                                    Adaptive PIE are adjusted
    at random, every 20 to 40 s     detection: which brokers are asked to take load
    after a session                 STABILIZING, until the load is steady; then predicted against
                                    achieved

Departs  1. A new status is published at once, not at the next period: others would ask this broker
            although it would refuse.
         2. Steady: the first and the last window of the stabilize duration differ by no more than
            the stabilize percentage, the delay in units of Nf (open).
Tested   tests/policies/offload/test_mediation.py, tests/policies/offload/test_offload_module.py;
         in simulation, tests/policies/offload/test_convergence.py.

Q1  With nothing to do, a broker pays for its timers and for PIE messages, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from godwit.broker.modules import Request
from godwit.broker.stimuli import Hop
from godwit.content.messages import Publication
from godwit.policies.offload import detection
from godwit.policies.offload.adaptive_pie import (
    METRICS,
    AdaptiveBounds,
    bounded_filter,
    plain_filter,
)
from godwit.policies.offload.broker_load import OffloadAction, load_account
from godwit.policies.offload.detection import Candidate, Triggers
from godwit.policies.offload.edge_context import EdgeContext
from godwit.policies.offload.load_status import LoadStatus, StatusEvent
from godwit.policies.offload.mediation import Mediator, SessionMessage
from godwit.policies.offload.mediation_messages import EdgeRequest, LbReply, PieLease
from godwit.policies.offload.mediation_messages import MediationMessage as Message
from godwit.policies.offload.offloader_session import SESSION_ALARMS
from godwit.policies.offload.outcomes import achieved
from godwit.policies.offload.pie import (
    LOCAL_PIE,
    KnownBrokers,
    Pie,
    PieDetails,
    PieRule,
    PieValues,
    pie_account,
    pie_advertisement,
)

#: Alarms; "detect" belongs to the module, which looks at its role first.
WINDOW, PERIOD, STABILIZE, LEASE = "window", "period", "stabilize", "lease"
WELCOME = "welcome"
#: A broker that is heard for the first time is answered within this time.
WELCOME_S = 2.0
PIE = "pie"


class EdgeBalancer:
    def __init__(self, context: EdgeContext, cluster: str) -> None:
        settings = context.settings
        self.cluster = cluster
        self.known = KnownBrokers(period_s=settings.local_pie_period_s, settings=settings)
        self.mediator = Mediator(context)
        self.other_cluster: str | None = None
        """The cluster that a global session is with."""
        self._context = context
        self._triggers = Triggers.local_of(settings)
        self._rule = PieRule(settings)
        self._bounds: AdaptiveBounds | None = None
        if settings.pie == "adaptive":
            self._bounds = AdaptiveBounds(
                ratio_trigger=settings.local_ratio_trigger,
                delay_trigger=settings.local_delay_trigger,
                normalization_s=settings.delay_normalization_s,
                history=settings.pie_history,
            )
        self._gave_way = 0

    # -- beginning and end ---------------------------------------------------------------------

    def start(self, now_s: float) -> list[Request]:
        context = self._context
        pie = pie_advertisement(LOCAL_PIE, self.cluster, context.broker)
        return [
            *context.post.advertise(PIE, pie),
            *self._subscribe(self.cluster, METRICS),
            context.alarms.set(WINDOW, now_s + context.view.meters.window_s),
            context.alarms.set(PERIOD, now_s + context.settings.local_pie_period_s),
        ]

    def stop(self, now_s: float) -> list[Request]:
        """The broker is not an edge broker any longer."""
        requests = self.mediator.abort("the broker has another role now", now_s)
        for cluster in filter(None, (self.cluster, self.other_cluster)):
            requests += self._unsubscribe(cluster)
        return [*requests, *self._context.post.unadvertise(PIE)]

    def _subscribe(self, cluster: str, metrics: Sequence[OffloadAction]) -> list[Request]:
        """Subscribe to the loads of a cluster, or change these of the three bounds."""
        post, bounds = self._context.post, self._bounds
        if bounds is None:
            return post.subscribe(f"{PIE}.{cluster}", plain_filter(LOCAL_PIE, cluster))
        requests: list[Request] = []
        for metric in metrics:
            filter = bounded_filter(LOCAL_PIE, cluster, metric, bounds.bounds[metric])
            requests += post.subscribe(f"{PIE}.{cluster}.{metric.value}", filter)
        return requests

    def _unsubscribe(self, cluster: str) -> list[Request]:
        words = [f"{PIE}.{cluster}", *(f"{PIE}.{cluster}.{metric.value}" for metric in METRICS)]
        return [request for word in words for request in self._context.post.unsubscribe(word)]

    # -- what happens --------------------------------------------------------------------------

    def on_in_effect(self, word: str | None, now_s: float) -> list[Request]:
        return self._publish() if word == PIE else []

    def on_pie(self, pie: Pie, kind: str, via: str, now_s: float) -> list[Request]:
        if pie.broker == self._context.broker or pie.cluster not in (
            self.cluster,
            self.other_cluster,
        ):
            return []
        is_new = self.known.hear(pie, now_s)
        alarms = self._context.alarms
        if not is_new or alarms.is_set(WELCOME):
            return []
        # It may have subscribed only now: it should know of this broker, too (E5).  Once for all
        # that are new at the same time.
        return [alarms.set(WELCOME, now_s + self._context.random.uniform(0.0, WELCOME_S))]

    def on_message(self, sender: str, message: Message, now_s: float) -> list[Request]:
        if isinstance(message, PieLease):
            return self._on_lease(sender, message, now_s)
        if isinstance(message, LbReply) and message.info is not None:
            self.known.learn(message.info)
        if isinstance(message, SessionMessage):
            return self._with_news(self.mediator.on_message(sender, message, now_s), now_s)
        return []

    def on_part(self, sender: str, now_s: float) -> list[Request]:
        return self.mediator.on_part(sender, now_s)

    def on_publication(
        self, publication: Publication, destinations: Sequence[Hop], now_s: float
    ) -> list[Request]:
        requests = self.mediator.on_publication(publication, destinations, now_s)
        return self._with_news(requests, now_s) if requests else []

    def on_arrived(self, client: str, session: str, now_s: float) -> list[Request]:
        requests = self.mediator.on_arrived(client, session, now_s)
        return self._with_news(requests, now_s) if requests else []

    def on_departed(self, client: str, now_s: float) -> list[Request]:
        requests = self.mediator.on_departed(client, now_s)
        return self._with_news(requests, now_s) if requests else []

    def abort(self, now_s: float) -> list[Request]:
        requests = self.mediator.abort("an operator has aborted it", now_s)
        return self._with_news(requests, now_s)

    def set_dry_run(self, dry_run: bool) -> None:
        self._context.dry_run = dry_run

    def on_paused(self, now_s: float, *, is_paused: bool) -> list[Request]:
        """No session begins while it is paused; one that has begun goes on."""
        self.mediator.is_paused = is_paused
        return self._with_news([], now_s)

    def on_alarm(self, purpose: str, now_s: float) -> list[Request]:
        alarms, settings = self._context.alarms, self._context.settings
        if purpose in SESSION_ALARMS:
            return self._with_news(self.mediator.on_alarm(purpose, now_s), now_s)
        match purpose:
            case "window":
                self._context.averages.read(now_s)
                return [alarms.set(WINDOW, now_s + self._context.view.meters.window_s)]
            case "period":
                return [
                    alarms.set(PERIOD, now_s + settings.local_pie_period_s),
                    *self._period_over(now_s),
                ]
            case "stabilize":
                return self._with_news(self._stabilize(now_s), now_s)
            case "lease":
                return self._end_lease()
            case "welcome":
                return self._publish()
            case _:
                return []

    # -- PIE -----------------------------------------------------------------------------------

    @property
    def values(self) -> PieValues:
        return PieValues.of(self._context.averages.info())

    def _pie(self) -> Pie:
        info = self._context.averages.info()
        values = PieValues.of(info)
        status = self._context.status.status
        in_session = status in (LoadStatus.BUSY, LoadStatus.STABILIZING)
        if self.mediator.is_paused and status is LoadStatus.OK:
            status = LoadStatus.BUSY  # It would refuse.
        details = PieDetails(
            info,
            balanced=detection.balanced_set(values, self.known, self._triggers),
            moving_sessions=self.mediator.moving_sessions,
            in_session=in_session,
        )
        return Pie(self._context.broker, self.cluster, status, values, details)

    def _publish(self, pie: Pie | None = None) -> list[Request]:
        pie = pie or self._pie()
        published = self._context.post.publish(PIE, pie.content(LOCAL_PIE), pie.payload())
        if published:
            self._rule.published(pie)
            if self._bounds is not None:
                self._bounds.on_published(pie.values)
        return published

    def _period_over(self, now_s: float) -> list[Request]:
        self.known.drop_expired(now_s)
        requests = self._renew_bounds()
        pie = self._pie()
        is_due = self._rule.is_due(pie, with_balanced_set=self.other_cluster is not None)
        return [*requests, *self._publish(pie)] if is_due else requests

    def _renew_bounds(self) -> list[Request]:
        bounds = self._bounds
        if bounds is None:
            return []
        changed = bounds.renew(self.values, self.known)
        requests: list[Request] = []
        if changed:
            for cluster in filter(None, (self.cluster, self.other_cluster)):
                requests += self._subscribe(cluster, changed)
        for pie in self.known:
            if not bounds.admits(pie.values):
                self.known.forget(pie.broker)
        return requests

    def _with_news(self, requests: list[Request], now_s: float) -> list[Request]:
        """Add what a new status entails: it is published, and a new load has to settle."""
        context = self._context
        if context.status.status is LoadStatus.STABILIZING:
            if not context.alarms.is_set(STABILIZE):
                settle_s = context.settings.stabilize_s
                requests = [*requests, context.alarms.set(STABILIZE, now_s + settle_s)]
        else:
            context.alarms.cancel(STABILIZE)
        pie = self._pie()
        return [*requests, *self._publish(pie)] if self._rule.has_news(pie) else requests

    # -- detection -----------------------------------------------------------------------------

    def detect(self, now_s: float) -> list[Request]:
        """Look for brokers to give load to."""
        context, mediator = self._context, self.mediator
        context.averages.read(now_s)
        self.known.drop_expired(now_s)
        if context.status.status is LoadStatus.BUSY or mediator.session is not None:
            return []
        context.update_availability()
        requests = self._with_news([], now_s)
        if mediator.is_paused:
            return requests
        info = context.averages.info()
        actions = detection.overloads(info, context.settings.higher_overload_threshold)
        found: list[Candidate] | None
        if actions:
            found = detection.overload_candidates(
                info, actions, self.known, context.settings.higher_overload_threshold
            )
        else:
            found = self._imbalances()
        if found is not None:
            requests += self._ask(found, now_s, overloaded=bool(actions))
        return [*requests, *self._call_for_help(now_s)]

    def _ask(self, found: list[Candidate], now_s: float, *, overloaded: bool) -> list[Request]:
        """Ask those of the candidates that are not left alone for a while."""
        mediator = self.mediator
        candidates = mediator.pairs.next_detection(found)
        if candidates:
            return mediator.ask(candidates, now_s, overloaded=overloaded)
        if found:
            return [*mediator.obstacles.on_all_failed(self._context.averages.info(), self.known)]
        if not self._is_obstructed():
            mediator.obstacles.on_success()
        return []

    def _is_obstructed(self) -> bool:
        """Whether the last obstacle stands: its partner may only be busy at the moment (U2)."""
        obstacle = self.mediator.obstacles.last
        pie = None if obstacle is None else self.known.get(obstacle.partner)
        if obstacle is None or pie is None:
            return False
        unit_s = self._triggers.normalization_s
        difference = self.values.difference(pie.values, obstacle.action, unit_s)
        return difference > self._triggers.of(obstacle.action)

    def _imbalances(self) -> list[Candidate] | None:
        """Step 2; None while this broker waits: to settle, or for brokers that are overloaded."""
        if self._context.status.status is LoadStatus.STABILIZING:
            return None
        if detection.gives_way(self.known) and self._gave_way < detection.GIVES_WAY_MAX:
            self._gave_way += 1
            return None
        self._gave_way = 0
        return detection.imbalance_candidates(self.values, self.known, self._triggers)

    def _call_for_help(self, now_s: float) -> list[Request]:
        """Tell the head if this broker is overloaded and no other can help."""
        context = self._context
        if context.status.status is not LoadStatus.NOT_AVAILABLE:
            return []
        if any(pie.status is LoadStatus.OK for pie in self.known):
            return []
        return context.send(self.cluster, EdgeRequest(session=""))

    # -- after a session -----------------------------------------------------------------------

    def _stabilize(self, now_s: float) -> list[Request]:
        """A stabilize duration is over: whether the load was steady."""
        context = self._context
        if context.status.status is not LoadStatus.STABILIZING:
            return []
        context.averages.read(now_s)
        measured = context.averages.measured()
        first, last = context.averages.first_and_last()
        if not self._is_steady(first, last):
            context.averages.forget()
            return []  # `_with_news` sets the alarm again.
        is_high = context.is_high
        context.status.apply(StatusEvent.SETTLED_HIGH if is_high else StatusEvent.SETTLED)
        prediction, self.mediator.prediction = self.mediator.prediction, None
        return [] if prediction is None else [achieved(prediction, measured)]

    def _is_steady(self, first: PieValues | None, last: PieValues | None) -> bool:
        if first is None or last is None:
            return True
        settings = self._context.settings
        return all(
            abs(last.difference(first, metric, settings.delay_normalization_s))
            <= settings.stabilize_percentage
            for metric in METRICS
        )

    # -- global sessions -----------------------------------------------------------------------

    def _on_lease(self, sender: str, lease: PieLease, now_s: float) -> list[Request]:
        """The head says that this cluster balances with another one, or no longer."""
        if sender != self.cluster:
            return []
        if lease.for_s <= 0:
            return self._end_lease() if lease.cluster == self.other_cluster else []
        requests: list[Request] = []
        if lease.cluster != self.other_cluster:
            requests += self._end_lease()
            self.other_cluster = lease.cluster
            requests += self._subscribe(lease.cluster, METRICS)
        return [*requests, self._context.alarms.set(LEASE, now_s + lease.for_s)]

    def _end_lease(self) -> list[Request]:
        cluster, self.other_cluster = self.other_cluster, None
        self._context.alarms.cancel(LEASE)
        if cluster is None:
            return []
        self.known.forget_cluster(cluster)
        return self._unsubscribe(cluster)

    # -- the operator --------------------------------------------------------------------------

    def account(self, now_s: float) -> Mapping[str, object]:
        """What an operator may want to know."""
        info = self._context.averages.info()
        session, obstacles = self.mediator.session, self.mediator.obstacles
        bounds = obstacles.bounds(info, self.known)
        return {
            "status": self._context.status.status.value,
            "load": load_account(info)
            | {"subscriptions": sum(1 for _ in self._context.view.subscriptions())},
            "other_cluster": self.other_cluster,
            "known": [pie_account(pie) for pie in self.known],
            "session": None
            if session is None
            else {
                "session": session.session,
                "partner": session.partner,
                "phase": session.phase.value,
                "metric": session.action.value,
            },
            "sessions": self.mediator.sessions,
            "lower_bounds": {
                "input": bounds.input_utilisation,
                "match_s": bounds.matching_delay_s,
                "output": bounds.output_utilisation,
            },
            "cannot_be_balanced": obstacles.in_words(info, self.known),
        }
