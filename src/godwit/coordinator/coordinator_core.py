"""The coordinator without I/O: requests, reports and outcomes in, answers and changes out.

It opens no socket and reads no clock: time is an argument, `take_changes` returns what must be
persistent, and the caller executes batches and reports their outcome.

    answer   = core.request_broker(request, now_s)
    input    = core.due(now_s)                   # None unless it is time to plan
    core.adopt(decide(input.situation(), ...))   # decide takes a while: in a thread
    batches  = core.hand_out(now_s)
    core.carried_out(batch, outcome, now_s)

C1  Planning needs a report of every live broker that arrived after the last plan was executed, and
    after the last planning.
C2  `Memory` with all changes applied is all that the next process needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import msgspec

from godwit.api import coordinator_api
from godwit.api.broker_api import MoveOutcome
from godwit.api.network_api import Authority, BrokerAccount, NetworkView
from godwit.api.network_views import Known, network_view
from godwit.coordinator.broker_records import AuthorityRecord, Change, Memory
from godwit.coordinator.changes import NetworkChanges
from godwit.coordinator.deciding import BalancingDecision
from godwit.coordinator.registry import Registry
from godwit.coordinator.rounds import Batch, Rounds
from godwit.coordinator.settings import CoordinatorSettings
from godwit.coordinator.situation import Situation, situation

#: For so long the offer of a supervisor to start a broker counts.
OFFER_S = 10.0


@dataclass(frozen=True, slots=True)
class PlanningInput:
    """The input of a decision; immutable."""

    reports: tuple[coordinator_api.LoadReport, ...]
    known_rates: Mapping[int, float]
    held: frozenset[str]

    def situation(self) -> Situation:
        return situation(self.reports, self.known_rates)


class Coordinator:
    def __init__(
        self,
        settings: CoordinatorSettings,
        memory: Memory | None = None,
        *,
        random: Random,
        now_s: float,
    ) -> None:
        self.settings = settings
        self.memory = memory or Memory()
        self._changes: list[Change] = []
        self.authority = _next_run(self.memory.authority, random)
        self._keep(AuthorityRecord(self.authority))
        self.changes = NetworkChanges(self.memory, self._keep)
        self.accounts: dict[str, tuple[float, BrokerAccount]] = {}
        """What each broker says about itself, with the time of its arrival."""
        autoscale = "" if settings.autoscale is None else "no decision yet"
        self.says = {"autoscale": autoscale, "clusters": ""}
        """What was decided last without being asked for (periodic_decisions.py)."""

        """Why their number is as it is, if this coordinator chooses it."""
        self.startable: dict[str, float] = {}
        """Brokers that a supervisor can start, with the time when it has said so."""
        self.registry = Registry(
            self.memory,
            self._keep,
            placement=settings.placement,
            random=random,
            silence_s=settings.silence_s,
            now_s=now_s,
            is_closed=self.is_closed,
        )
        self.rounds = Rounds(self.memory, self._keep, settings)
        self.rounds.recover(now_s)
        self._reports: dict[str, tuple[float, coordinator_api.LoadReport]] = {}
        """The last report of each broker with the time of its arrival, the oldest first."""
        self._home: dict[str, str] = {}
        self._known_rates: dict[int, float] = {}
        self._unheld: set[int] = set()
        self._fresh_after_s = now_s
        self._looked_s: float | None = None
        self._says = "no planning yet"
        self._waits_for: list[str] = []
        self._shown: tuple[tuple[int, ...], Situation] | None = None

    def _keep(self, change: Change) -> None:
        self.memory.apply(change)
        self._changes.append(change)

    def take_changes(self) -> list[Change]:
        taken, self._changes = self._changes, []
        return taken

    # -- requests of users and brokers ---------------------------------------------------------

    def register_user(self, request: coordinator_api.RegisterUser) -> coordinator_api.Registered:
        self.registry.register_user(request)
        return coordinator_api.Registered(request.user, self.settings.report_s)

    def register_broker(
        self, request: coordinator_api.RegisterBroker, now_s: float
    ) -> coordinator_api.Registered:
        self.registry.register_broker(request, now_s)
        return self._registered(request.broker)

    def _registered(self, broker: str) -> coordinator_api.Registered:
        return coordinator_api.Registered(broker, self.settings.report_s, self.authority)

    def request_broker(
        self, request: coordinator_api.RequestBroker, now_s: float
    ) -> coordinator_api.Assigned:
        loads = {
            broker: report.bytes_in_per_s + report.bytes_out_per_s
            for broker, (_, report) in self._reports.items()
        }
        home = self._home.get(request.user)
        return self.registry.assign(request, now_s, home=home, loads=loads)

    def report(
        self, report: coordinator_api.LoadReport, now_s: float
    ) -> coordinator_api.Registered:
        broker = report.broker
        self.registry.hear_of(broker, now_s)
        _, last = self._reports.pop(broker, (0.0, None))
        for client in last.subscribers if last is not None else ():
            if self._home.get(client) == broker:
                del self._home[client]
        self._home.update(dict.fromkeys(report.subscribers, broker))
        self._known_rates.update(report.rates)
        self._reports[broker] = now_s, report
        if report.account is not None:
            self.hear(report.account, now_s)
        return self._registered(broker)

    # -- changes of the network ----------------------------------------------------------------

    def hear(self, account: BrokerAccount, now_s: float) -> None:
        """A broker says how it is."""
        self.accounts[account.broker] = now_s, account

    def is_closed(self, broker: str) -> bool:
        """Whether a broker takes no clients: it is being drained, or joins."""
        known = self.accounts.get(broker)
        is_draining = known is not None and known[1].is_draining
        return is_draining or broker in self.changes.joining

    def take_over(self) -> None:
        """Be in charge, above every authority that brokers have seen."""
        seen = [a.authority.number for _, a in self.accounts.values() if a.authority is not None]
        number = max([self.authority.number, *seen]) + 1
        self.authority = msgspec.structs.replace(self.authority, number=number)
        self._keep(AuthorityRecord(self.authority))

    def remove_broker(self, broker: str) -> None:
        """It has left for good."""
        self.registry.remove(broker)
        self.accounts.pop(broker, None)
        self._reports.pop(broker, None)

    def tree(self, now_s: float) -> frozenset[tuple[str, str]]:
        """The links of the network; none if one of them is not up."""
        links = self.network(now_s).links
        if any(link.status != "up" for link in links):
            return frozenset()
        return frozenset((min(x.one, x.other), max(x.one, x.other)) for x in links)

    def can_be_started(self, now_s: float) -> frozenset[str]:
        """Brokers that have left, and that a supervisor has offered to start again."""
        return frozenset(b for b, at_s in self.startable.items() if now_s - at_s < OFFER_S)

    def network(self, now_s: float) -> NetworkView:
        known = {
            name: Known(account, None if at_s is None else now_s - at_s, self.is_live(name, now_s))
            for name in self.registry.brokers
            for at_s, account in (self.accounts.get(name, (None, None)),)
        }
        view = network_view(
            known,
            joining=self.changes.joining,
            change=self.changes.current,
            authority=self.authority,
        )
        return msgspec.structs.replace(
            view, autoscale=self.says["autoscale"], clusters=self.says["clusters"]
        )

    # -- balancing -----------------------------------------------------------------------------

    def due(self, now_s: float) -> PlanningInput | None:
        """The input of the next decision, if it is time for one."""
        if self.rounds.is_under_way:
            return None
        current = self.changes.current
        if current is not None:
            self._says = f"change {current.number} of the network is {current.state.value}"
            self._waits_for = []
            return None
        live = self.registry.open(now_s)
        self._waits_for = [b for b in live if self._reported_s(b) <= self._fresh_after_s]
        if self._waits_for:
            return None
        if len(live) < 2:
            self._says = f"balancing needs two live brokers; there are {len(live)}"
            return None
        self._fresh_after_s = now_s
        reports = self._reports_of(live)
        self._forget_rates()
        return PlanningInput(reports, dict(self._known_rates), self.rounds.held(now_s))

    def adopt(self, decision: BalancingDecision, now_s: float) -> None:
        self._looked_s, self._says = now_s, decision.why
        self.rounds.adopt(decision, now_s)

    def hand_out(self, now_s: float) -> list[Batch]:
        was_under_way = self.rounds.is_under_way
        batches = self.rounds.hand_out(self, now_s)
        self._note_end(was_under_way, now_s)
        return batches

    def carried_out(self, batch: Batch, came_of_it: MoveOutcome | str, now_s: float) -> None:
        was_under_way = self.rounds.is_under_way
        self.rounds.carried_out(batch, came_of_it, now_s)
        self._note_end(was_under_way, now_s)

    def _note_end(self, was_under_way: bool, now_s: float) -> None:
        if was_under_way and not self.rounds.is_under_way:
            # A report that was in flight at that moment may not include the last moves.
            self._fresh_after_s = now_s + self.settings.report_s / 10

    def _reported_s(self, broker: str) -> float:
        return self._reports[broker][0] if broker in self._reports else float("-inf")

    def _reports_of(self, brokers: list[str]) -> tuple[coordinator_api.LoadReport, ...]:
        return tuple(report for name, (_, report) in self._reports.items() if name in brokers)

    def _forget_rates(self) -> None:
        """Drop rates not held at two plannings in a row: a moving subscriber is in no report."""
        reports = [report for _, report in self._reports.values()]
        held = {be for report in reports for of in report.subscribers.values() for be in of}
        unheld = self._known_rates.keys() - held
        for be in unheld & self._unheld:
            del self._known_rates[be]
        self._unheld = unheld

    # -- rounds.Surroundings -------------------------------------------------------------------

    def is_live(self, broker: str, now_s: float) -> bool:
        return self.registry.is_live(broker, now_s)

    def can_be_asked(self, broker: str) -> bool:
        return self.registry.brokers[broker].http is not None

    def home(self, client: str) -> str | None:
        return self._home.get(client)

    # -- views ---------------------------------------------------------------------------------

    def situation(self, now_s: float) -> Situation:
        """The situation of the live brokers that have reported."""
        reports = self._reports_of(self.registry.live(now_s))
        seen = tuple(map(id, reports))  # The reports are kept, so their ids are unique.
        if self._shown is None or self._shown[0] != seen:
            self._shown = seen, situation(reports, self._known_rates)
        return self._shown[1]

    def brokers(self, now_s: float) -> coordinator_api.Brokers:
        now = self.situation(now_s)
        shown = []
        for name, record in sorted(self.registry.brokers.items()):
            arrived_s, report = self._reports.get(name, (None, None))
            shown.append(
                coordinator_api.BrokerStatus(
                    broker=name,
                    url=record.url,
                    http=record.http,
                    location=record.location,
                    is_live=self.is_live(name, now_s),
                    report_age_s=None if arrived_s is None else now_s - arrived_s,
                    bytes_in_per_s=0.0 if report is None else report.bytes_in_per_s,
                    bytes_out_per_s=0.0 if report is None else report.bytes_out_per_s,
                    load=now.load_of.get(name, 0.0),
                    subscribers=now.subscribers_of.get(name, 0),
                    be_subscriptions=now.be_of.get(name, 0),
                )
            )
        return coordinator_api.Brokers(shown, now.balance)

    def plan(self) -> coordinator_api.LastPlan:
        plan = self.memory.plan
        moves = [m for m in self.memory.moves.values() if plan and m.plan == plan.number]
        says = "a plan is being executed" if self.rounds.is_under_way else self._says
        waits_for = [] if self.rounds.is_under_way else self._waits_for
        return coordinator_api.LastPlan(
            self._looked_s, says, waits_for, plan, moves, _counted(moves)
        )

    def reject(
        self, rejected: coordinator_api.RejectedMove, now_s: float
    ) -> coordinator_api.MoveRecord:
        because = rejected.reason or "rejected by an operator"
        return self.rounds.reject(rejected.number, because, now_s)

    def moves(self, which: coordinator_api.WhichMoves) -> coordinator_api.Moves:
        every = self.memory.moves
        wanted = [
            every[number]
            for number in sorted(every, reverse=True)
            if which.client in (None, every[number].client)
        ]
        return coordinator_api.Moves(wanted[: which.limit], _counted(list(every.values())))


def _next_run(last: Authority | None, random: Random) -> Authority:
    """The number stays: a coordinator that was replaced is not in charge again when it restarts."""
    if last is None:
        return Authority(1, f"{random.getrandbits(64):016x}")
    return msgspec.structs.replace(last, run=last.run + 1)


def _counted(moves: list[coordinator_api.MoveRecord]) -> dict[str, int]:
    return {
        outcome.value: count
        for outcome in coordinator_api.Outcome
        if (count := sum(move.outcome is outcome for move in moves))
    }
