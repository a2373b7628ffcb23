"""BS1 in virtual time: subscribers, brokers and channels are simulated, the coordinator is real.

Subscribers log in where the coordinator sends them, subscribe, and walk; channels execute at their
periods, and their results (emergency_results.py) go to every broker with a holder once, and from
there to each holder.  Brokers report as live ones do, with the same moving averages
(sharing/rates.py), each at a different time.  Placement, plans, their steps and hold times are
those of `godwit.coordinator`.  A move takes MOVE_S; until then its subscriber is served by its
old broker.  Nothing else takes time: neither executions nor reports.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random

import numpy as np

from godwit.api import coordinator_api
from godwit.api.broker_api import MoveOutcome
from godwit.content.geography import GeoPoint
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.deciding import decide
from godwit.coordinator.rounds import MOVES_KEPT, Batch
from godwit.coordinator.settings import CoordinatorSettings
from godwit.demos.emergencies.scenario import EmergencyScenario, Town
from godwit.experiments.bad_prototype.emergency_results import Arguments, EmergencyResults
from godwit.experiments.bad_prototype.run_notes import Notes
from godwit.policies.staged.loads import Floats
from godwit.sharing.rates import Rates
from godwit.workloads.emergencies import WALKING_M_PER_S, emergency_reports, shelters
from godwit.workloads.emergency_channels import CHANNELS
from godwit.workloads.roads import walkers

#: From the request to a broker until its clients have moved.
MOVE_S = 0.5
#: How often the coordinator looks for brokers that can be asked.
TICK_S = 0.1
NEAR_ME = "EmergenciesNearMe"


class PrototypeBroker:
    """The subscribers of a broker with their subscriptions; its bytes in and out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.holdings: defaultdict[str, list[int]] = defaultdict(list)
        self._holders: Counter[int] = Counter()
        self._rates = Rates()
        self._bytes_in = self._bytes_out = 0
        self._reported_s = 0.0

    def subscribe(self, user: str, be: int, now_s: float) -> None:
        self.holdings[user].append(be)
        self._holders[be] += 1
        self._rates.begin(be, now_s)

    def leave(self, user: str) -> list[int]:
        held = self.holdings.pop(user, [])
        self._holders.subtract(held)
        for be in held:
            if not self._holders[be]:
                self._rates.end(be)
        return held

    def take(self, be: int, size_bytes: int, now_s: float) -> None:
        """Take in the results of a BE subscription, for its holders."""
        holders = self._holders[be]
        if holders:
            self._rates.add(be, size_bytes, now_s)
            self._bytes_in += size_bytes
            self._bytes_out += holders * size_bytes

    def report(self, now_s: float) -> coordinator_api.LoadReport:
        elapsed_s = now_s - self._reported_s
        held = {be for of_user in self.holdings.values() for be in of_user}
        report = coordinator_api.LoadReport(
            broker=self.name,
            bytes_in_per_s=self._bytes_in / elapsed_s,
            bytes_out_per_s=self._bytes_out / elapsed_s,
            rates=self._rates.bytes_per_s(held, now_s),
            subscribers={user: list(of_user) for user, of_user in self.holdings.items()},
        )
        self._bytes_in = self._bytes_out = 0
        self._reported_s = now_s
        return report


class Prototype:
    def __init__(
        self, scenario: EmergencyScenario, settings: CoordinatorSettings, notes: Notes
    ) -> None:
        self._scenario, self._settings, self._notes = scenario, settings, notes
        town = scenario.town()
        self._coordinator = Coordinator(settings, random=Random(scenario.seed), now_s=0.0)
        self._brokers = {f"B{n + 1}": PrototypeBroker(f"B{n + 1}") for n in range(scenario.brokers)}
        self._home: dict[str, PrototypeBroker] = {}
        self._be: dict[tuple[str, Arguments], int] = {}
        self._agenda: list[tuple[float, int, Callable[[float], None]]] = []
        self._serial = count()
        self._is_ticking = False
        for name, place in zip(self._brokers, town.broker_places, strict=True):
            self._coordinator.register_broker(
                coordinator_api.RegisterBroker(
                    name, f"godwit://{name}:1", f"http://{name}:1", place
                ),
                0.0,
            )
        self._plan_subscribers(town)
        self._plan_executions(town)
        self._plan_reports()

    def play(self) -> None:
        while self._agenda:
            now_s, _, act = heappop(self._agenda)
            if now_s > self._scenario.duration_s:
                break
            act(now_s)
        self._notes.close(
            self._coordinator.moves(coordinator_api.WhichMoves(limit=MOVES_KEPT)).moves
        )

    def _at(self, at_s: float, act: Callable[[float], None]) -> None:
        heappush(self._agenda, (at_s, next(self._serial), act))

    # -- subscribers ---------------------------------------------------------------------------

    def _plan_subscribers(self, town: Town) -> None:
        pace = self._scenario.pace
        for each in town.subscribers:
            self._at(each.login_s / pace, self._login(each.user, each.place))
            for subscription in each.subscriptions:
                key = subscription.channel, subscription.arguments
                be = self._be.setdefault(key, len(self._be))
                self._at(subscription.at_s / pace, self._subscribing(each.user, be))

    def _login(self, user: str, place: GeoPoint) -> Callable[[float], None]:
        def act(now_s: float) -> None:
            self._coordinator.register_user(coordinator_api.RegisterUser(user, place))
            assigned = self._coordinator.request_broker(coordinator_api.RequestBroker(user), now_s)
            self._home[user] = self._brokers[assigned.broker]

        return act

    def _subscribing(self, user: str, be: int) -> Callable[[float], None]:
        return lambda now_s: self._home[user].subscribe(user, be, now_s)

    # -- channels ------------------------------------------------------------------------------

    def _plan_executions(self, town: Town) -> None:
        results = found_results(self._scenario, town)
        for channel in CHANNELS:
            found = {
                be: results.bytes_of(channel.name, arguments).tolist()
                for (name, arguments), be in self._be.items()
                if name == channel.name
            }
            every_s = results.every_s(channel.name)
            for number in range(results.executions(channel.name)):
                sizes = {be: sizes[number] for be, sizes in found.items() if sizes[number]}
                self._at((number + 1) * every_s, self._execution(sizes))

    def _execution(self, sizes: dict[int, int]) -> Callable[[float], None]:
        def act(now_s: float) -> None:
            for broker in self._brokers.values():
                for be, size_bytes in sizes.items():
                    broker.take(be, size_bytes, now_s)

        return act

    # -- the coordinator -----------------------------------------------------------------------

    def _plan_reports(self) -> None:
        report_s = self._settings.report_s
        for round_ in range(int(self._scenario.duration_s / report_s)):
            for number, broker in enumerate(self._brokers.values(), start=1):
                share = number / len(self._brokers)
                self._at((round_ + share) * report_s, self._reporting(broker))
            self._at((round_ + 1) * report_s, self._look)

    def _reporting(self, broker: PrototypeBroker) -> Callable[[float], None]:
        def act(now_s: float) -> None:
            self._coordinator.report(broker.report(now_s), now_s)
            self._balance(now_s)

        return act

    def _look(self, now_s: float) -> None:
        seen = self._coordinator.brokers(now_s)
        balance = seen.balance
        self._notes.look(now_s, seen.brokers, balance.fe_subscriptions, balance.be_subscriptions)

    def _balance(self, now_s: float) -> None:
        look = self._coordinator.due(now_s)
        if look is not None:
            decision = decide(look.situation(), look.held, self._settings)
            self._coordinator.adopt(decision, now_s)
        for batch in self._coordinator.hand_out(now_s):
            self._at(now_s + MOVE_S, self._moving(batch))
        if self._coordinator.rounds.is_under_way and not self._is_ticking:
            self._is_ticking = True
            self._at(now_s + TICK_S, self._tick)

    def _tick(self, now_s: float) -> None:
        self._is_ticking = False
        self._balance(now_s)

    def _moving(self, batch: Batch) -> Callable[[float], None]:
        def act(now_s: float) -> None:
            source, target = self._brokers[batch.source], self._brokers[batch.target]
            for user in batch.clients:
                for be in source.leave(user):
                    target.subscribe(user, be, now_s)
                self._home[user] = target
            outcome = MoveOutcome(moved=list(batch.clients), stayed={}, unknown=[])
            self._coordinator.carried_out(batch, outcome, now_s)

        return act


def found_results(scenario: EmergencyScenario, town: Town) -> EmergencyResults:
    """The reports, and what channels find; the same for all schemes of a seed."""
    random = Random(scenario.seed)
    refuges = shelters(random, town.roads)
    reports = emergency_reports(
        random, town.roads, until_s=scenario.duration_s, per_s=scenario.reports_per_s
    )
    published = [(step.at_s, step.record) for step in reports]
    return EmergencyResults(
        published,
        refuges,
        _places(random, scenario, town),
        pace=scenario.pace,
        until_s=scenario.duration_s,
    )


def _places(random: Random, scenario: EmergencyScenario, town: Town) -> dict[str, Floats]:
    """The place of each user at each execution that reads it."""
    every_s = next(c.every_s for c in CHANNELS if c.name == NEAR_ME) / scenario.pace
    executions = int(scenario.duration_s / every_s + 1e-9)
    people = walkers(town.roads, random, scenario.users, WALKING_M_PER_S)
    found = {}
    for each, walker in zip(town.subscribers, people, strict=True):
        steps = [walker.step(every_s) for _ in range(executions)]
        found[each.user] = np.array([(place.latitude, place.longitude) for place in steps])
    return found
