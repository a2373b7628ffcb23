"""Random histories: brokers come and go, subscribers too, plans are made and half carried out.

The world decides what really happens to those who are asked; the coordinator learns of it by
reports and answers, late, or never, and now and then it is killed and starts anew.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.coordinator.scenes import broker_at

from godwit.api import coordinator_api
from godwit.api.broker_api import MoveOutcome
from godwit.coordinator.broker_records import Memory
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.deciding import decide
from godwit.coordinator.rounds import ANSWER_GRACE_S, Batch
from godwit.coordinator.settings import CoordinatorSettings
from godwit.policies.staged.planning import Strategy

FINAL = {"moved", "stayed", "unknown", "dropped"}


class World:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.settings = CoordinatorSettings(
            alpha=random.choice([0.0, 0.05, 0.15]),
            gamma=random.choice([0.3, 100.0]),
            strategy=random.choice(list(Strategy)),
            report_s=10.0,
            hold_s=random.choice([20.0, 60.0]),
            moves_per_s=random.choice([0.2, 2.0, 50.0]),
            plan_s=random.choice([30.0, 300.0]),
            dry_run=random.random() < 0.15,
        )
        self.now_s = 0.0
        self.memory = Memory()
        """What is on the disk."""
        self.core = Coordinator(self.settings, random=Random(seed), now_s=0.0)
        self.brokers = [f"B{n}" for n in range(1, random.randint(2, 5) + 1)]
        self.dead: set[str] = set()
        self.rates = {be: random.choice([0.0, 1.0, 10.0, 500.0]) for be in range(12)}
        self.holds = {
            f"s{n}": random.sample(range(12), random.randint(0, 5))
            for n in range(random.randint(0, 25))
        }
        self.home = {name: random.choice(self.brokers[:2]) for name in self.holds}
        self.answers: list[tuple[float, Batch, MoveOutcome | str]] = []
        self.last_asked_s: dict[str, float] = {}
        self.heard_s: dict[str, float] = {}
        self.asked = 0
        self.moved = 0
        self.plans = 0
        for broker in self.brokers:
            self.register(broker)

    def register(self, broker: str) -> None:
        self.core.register_broker(broker_at(int(broker[1:])), self.now_s)
        self.heard_s[broker] = self.now_s

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.now_s += self.random.choice([0.1, 0.7, 3.0])
            self.live_on()
            self.report()
            self.answer()
            self.balance()
            if self.random.random() < 0.01:
                self.restart()
            self.save()

    def live_on(self) -> None:
        if self.random.random() < 0.02:
            broker = self.random.choice(self.brokers)
            self.dead ^= {broker}
        if self.home and self.random.random() < 0.1:
            self.home[self.random.choice(list(self.home))] = self.random.choice(self.brokers)
        if self.random.random() < 0.05:
            self.rates[self.random.randrange(12)] = self.random.uniform(0.0, 500.0)

    def report(self) -> None:
        for broker in self.brokers:
            if broker in self.dead or self.random.random() < 0.7:
                continue
            here = {name: held for name, held in self.holds.items() if self.home[name] == broker}
            held = {be for bes in here.values() for be in bes}
            rates = {be: self.rates[be] for be in held}
            self.core.report(coordinator_api.LoadReport(broker, 0.0, 0.0, rates, here), self.now_s)
            self.heard_s[broker] = self.now_s

    def answer(self) -> None:
        due = [entry for entry in self.answers if entry[0] <= self.now_s]
        self.answers = [entry for entry in self.answers if entry[0] > self.now_s]
        for _, batch, outcome in due:
            self.core.carried_out(batch, outcome, self.now_s)

    def balance(self) -> None:
        look = self.core.due(self.now_s)
        if look is not None:
            assert not self.answers or not self.core.rounds.is_under_way
            decision = decide(look.situation(), look.held, self.settings)
            if decision.moves:
                self.plans += 1
                names = {decision.situation.clients[move.subscriber] for move in decision.moves}
                assert len(names) == len(decision.moves), "nobody is in a plan twice"
                assert not names & look.held, "D1"
                before = sorted(decision.situation.loads.total.tolist(), reverse=True)
                assert sorted(decision.after.total.tolist(), reverse=True) < before, "D2"
                assert decision.after.maximum <= decision.situation.loads.maximum
            self.core.adopt(decision, self.now_s)
        batches = self.core.hand_out(self.now_s)
        self.save()  # As the server does, before it asks anybody.
        for batch in batches:
            self.check(batch)
            self.carry_out(batch)

    def check(self, batch: Batch) -> None:
        assert not self.settings.dry_run, "R6"
        for broker in (batch.source, batch.target):
            assert self.now_s - self.heard_s[broker] < self.settings.silence_s, "R2"
        for client in batch.clients:
            last_s = self.last_asked_s.get(client, float("-inf"))
            assert self.now_s - last_s >= self.settings.hold_s, "R1"
            self.last_asked_s[client] = self.now_s
        self.asked += len(batch.clients)
        assert self.asked <= (self.now_s + 1) * self.settings.moves_per_s + 1, "R5"

    def carry_out(self, batch: Batch) -> None:
        moved, stayed, unknown = [], {}, []
        for client in batch.clients:
            if self.home[client] != batch.source or batch.source in self.dead:
                unknown.append(client)
            elif self.random.random() < 0.2 or batch.target in self.dead:
                stayed[client] = "no wish"
            else:
                self.home[client] = batch.target
                self.moved += 1
                moved.append(client)
        fate = self.random.random()
        if fate < 0.1 or batch.source in self.dead:
            return  # No answer, ever.
        outcome = MoveOutcome(moved=moved, stayed=stayed, unknown=unknown)
        late_s = self.random.choice([0.0, 2.0, batch.answer_s + 2 * ANSWER_GRACE_S])
        self.answers.append((self.now_s + late_s, batch, "broken" if fate < 0.2 else outcome))

    def save(self) -> None:
        for change in self.core.take_changes():
            self.memory.apply(change)
        assert self.memory == self.core.memory, "C2"

    def restart(self) -> None:
        self.core = Coordinator(
            self.settings, self.memory_on_disk(), random=self.random, now_s=self.now_s
        )
        self.answers.clear()
        self.heard_s = dict.fromkeys(self.memory.brokers, self.now_s)

    def memory_on_disk(self) -> Memory:
        self.save()
        memory = Memory()
        kept = self.memory
        for each in (kept.brokers, kept.users, kept.moves):
            for change in each.values():
                memory.apply(change)
        if kept.plan is not None:
            memory.apply(kept.plan)
        return memory

    def fall_quiet(self) -> None:
        """All brokers are dead: what is under way has to come to an end, R4."""
        self.answers.clear()
        for _ in range(40):
            self.now_s += 100.0
            for batch in self.core.hand_out(self.now_s):
                self.check(batch)
        assert not self.core.rounds.is_under_way
        if not self.settings.dry_run:
            assert {move.outcome.value for move in self.core.memory.moves.values()} <= FINAL


def test_random_histories() -> None:
    totals = {"asked": 0, "moved": 0, "plans": 0}
    for seed in range(150):
        world = World(seed)
        try:
            world.run(steps=200)
            world.fall_quiet()
        except BaseException as error:
            error.add_note(f"the seed is {seed}")
            raise
        totals["asked"] += world.asked
        totals["moved"] += world.moved
        totals["plans"] += world.plans
    assert totals["asked"] > 1000, totals
    assert totals["moved"] > 500, totals
    assert totals["plans"] > 300, totals


@pytest.mark.parametrize("seed", range(3))
def test_a_world_that_stands_still_comes_to_rest(seed: int) -> None:
    """No oscillation: with constant rates and willing subscribers, planning ends."""
    random = Random(seed)
    settings = CoordinatorSettings(alpha=0.1, moves_per_s=1000.0, hold_s=5.0, report_s=10.0)
    core = Coordinator(settings, random=random, now_s=0.0)
    for number in range(1, 5):
        core.register_broker(broker_at(number), 0.0)
    rates = {be: random.uniform(1.0, 100.0) for be in range(40)}
    holds = {f"s{n}": random.sample(range(40), 5) for n in range(80)}
    home = dict.fromkeys(holds, "B1")
    moves = []
    for step in range(40):
        now_s = 10.0 * step
        for broker in ("B1", "B2", "B3", "B4"):
            here = {name: held for name, held in holds.items() if home[name] == broker}
            known = {be: rates[be] for bes in here.values() for be in bes}
            core.report(coordinator_api.LoadReport(broker, 0.0, 0.0, known, here), now_s + 1)
        look = core.due(now_s + 2)
        if look is not None:
            core.adopt(decide(look.situation(), look.held, settings), now_s + 2)
        while batches := core.hand_out(now_s + 3):
            for batch in batches:
                home |= dict.fromkeys(batch.clients, batch.target)
                moves.append(step)
                outcome = MoveOutcome(moved=list(batch.clients), stayed={}, unknown=[])
                core.carried_out(batch, outcome, now_s + 3)
    assert moves
    assert max(moves) < 20, f"seed {seed}: it never rests"
    assert core.situation(400.0).loads.cov <= 0.1
