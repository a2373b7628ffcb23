"""The desk against a small data cluster: every client gets every row from its start on, once."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from tests.sharing.clusters import CHANNEL, MemoryCluster

from godwit.api.datacluster_api import (
    ExecutionRows,
    Granted,
    Pull,
    Pulled,
    Subscribe,
    Unsubscribe,
    Wanted,
)
from godwit.content.channel_messages import (
    ChannelInEffect,
    ChannelSubscription,
    ChannelSubscriptionId,
    Position,
    Row,
)
from godwit.content.messages import Refusal
from godwit.content.values import Value
from godwit.sharing.rates import Rates
from godwit.sharing.shared_subscriptions import Ask, End, Order, Push, SharedSubscriptions, Tell


def request(id: str, n: Value, start: Position | None = None) -> ChannelSubscription:
    return ChannelSubscription(
        id=ChannelSubscriptionId(id), channel=CHANNEL, arguments={"n": n}, start=start
    )


def granted(
    desk: SharedSubscriptions, orders: list[Order], id: int = 7, execution: int = 1
) -> list[Order]:
    (ask,) = orders
    assert isinstance(ask, Ask)
    return desk.granted(ask.key, Granted(id=id, start=(execution, 0)))


def rows(execution: int, *ns: int, first: int = 0) -> ExecutionRows:
    return ExecutionRows(
        execution=execution,
        first=first,
        rows=[{"n": n} for n in ns],
        executed_s=0.0,
        size_bytes=10 * len(ns),
    )


def seen(pushes: list[Push]) -> list[tuple[str, int, int, list[Value]]]:
    return [
        (p.client, p.results.execution, p.results.first, [row["n"] for row in p.results.rows])
        for p in pushes
    ]


def test_the_same_arguments_are_asked_for_once() -> None:
    desk = SharedSubscriptions()
    orders = desk.subscribe("a", request("a/c1", 1))
    assert desk.subscribe("b", request("b/c1", 1)) == []
    told = granted(desk, orders)
    assert [order.client for order in told if isinstance(order, Tell)] == ["a", "b"]
    assert (desk.front_ends, desk.back_ends, desk.sharing_ratio) == (2, 1, 2.0)
    assert desk.subscribers() == {"a": [7], "b": [7]}
    assert desk.leave("a") == []
    assert desk.unsubscribe("b", ChannelSubscriptionId("b/c1")) == [End(7, may_come_back=False)]
    assert (desk.front_ends, desk.back_ends) == (0, 0)


def test_who_leaves_may_come_back_elsewhere() -> None:
    desk = SharedSubscriptions()
    granted(desk, desk.subscribe("a", request("a/c1", 1)))
    assert desk.holds("a")
    assert desk.leave("a") == [End(7, may_come_back=True)]
    assert not desk.holds("a")


def test_a_refusal_reaches_everybody_who_asked() -> None:
    desk = SharedSubscriptions()
    (ask,) = desk.subscribe("a", request("a/c1", 1))
    desk.subscribe("b", request("b/c1", 1))
    assert isinstance(ask, Ask)
    told = desk.granted(ask.key, Granted(error="no such channel"))
    assert told == [
        Tell("a", Refusal(about="a/c1", reason="no such channel")),
        Tell("b", Refusal(about="b/c1", reason="no such channel")),
    ]
    assert desk.back_ends == 0


def test_nobody_wants_what_is_granted_too_late() -> None:
    desk = SharedSubscriptions()
    orders = desk.subscribe("a", request("a/c1", 1))
    assert desk.leave("a") == []
    assert granted(desk, orders) == [End(7, may_come_back=False)]


def test_one_and_one_point_zero_are_one_in_the_data_cluster() -> None:
    desk = SharedSubscriptions()
    granted(desk, desk.subscribe("a", request("a/c1", 1)))
    told = granted(desk, desk.subscribe("b", request("b/c1", 1.0)), execution=4)
    assert told == [Tell("b", ChannelInEffect(id=ChannelSubscriptionId("b/c1"), start=(1, 0)))]
    assert desk.back_ends == 1
    assert desk.leave("a") == []
    assert desk.leave("b") == [End(7, may_come_back=True)]


def test_a_notice_that_comes_before_the_answer_is_remembered() -> None:
    desk = SharedSubscriptions()
    orders = desk.subscribe("a", request("a/c1", 1))
    desk.ready([7], 3)
    granted(desk, orders, execution=2)
    (pull,) = desk.pulls(lambda _: True, 10)
    assert (pull.id, pull.start) == (7, (2, 0))


def test_each_is_served_from_its_position() -> None:
    desk = SharedSubscriptions()
    granted(desk, desk.subscribe("a", request("a/c1", 1, start=(1, 1))), execution=3)
    desk.subscribe("b", request("b/c1", 1, start=(2, 0)))
    desk.ready([7], 3)
    (pull,) = desk.pulls(lambda _: True, 10)
    assert pull.start == (1, 1)
    assert desk.pulls(lambda _: True, 10) == []  # D2
    results = [rows(1, 11, 12, first=1), rows(3, 31, 32)]
    pushes = desk.pulled(Pulled(id=7, start=(1, 1), end=(4, 0), results=results), lambda _: True)
    assert seen(pushes) == [
        ("a", 1, 1, [11, 12]), ("a", 3, 0, [31, 32]), ("b", 3, 0, [31, 32])
    ]  # fmt: skip
    desk.may_pull_again([pull])
    assert desk.pulls(lambda _: True, 10) == []


def test_who_cannot_take_it_is_served_later() -> None:
    desk = SharedSubscriptions()
    granted(desk, desk.subscribe("a", request("a/c1", 1)))
    desk.subscribe("b", request("b/c1", 1))
    desk.ready([7], 1)
    (pull,) = desk.pulls(lambda client: client == "a", 10)
    pulled = Pulled(id=7, start=(1, 0), end=(2, 0), results=[rows(1, 1, 2)])
    assert seen(desk.pulled(pulled, lambda client: client == "a")) == [("a", 1, 0, [1, 2])]
    desk.may_pull_again([pull])
    assert desk.pulls(lambda client: client == "a", 10) == []
    assert desk.pulls(lambda _: True, 10) == [], "nobody said that b can take it now"
    desk.wake("b")
    (pull,) = desk.pulls(lambda _: True, 10)
    assert seen(desk.pulled(pulled, lambda _: True)) == [("b", 1, 0, [1, 2])]


def test_rows_of_an_execution_are_split_into_frames() -> None:
    desk = SharedSubscriptions()
    granted(desk, desk.subscribe("a", request("a/c1", 1)))
    many = ExecutionRows(
        execution=1,
        first=0,
        rows=[{"n": n} for n in range(10)],
        executed_s=0.0,
        size_bytes=1_000_000,
    )
    pushes = desk.pulled(Pulled(id=7, start=(1, 0), end=(2, 0), results=[many]), lambda _: True)
    assert [n for *_, ns in seen(pushes) for n in ns] == list(range(10))
    assert [first for _, _, first, _ in seen(pushes)] == [0, 2, 4, 6, 8]


def test_what_all_have_acknowledged_is_done() -> None:
    desk = SharedSubscriptions()
    granted(desk, desk.subscribe("a", request("a/c1", 1)))
    desk.subscribe("b", request("b/c1", 1))
    desk.pulled(Pulled(id=7, start=(1, 0), end=(5, 0), results=[]), lambda _: True)
    desk.acknowledge("a", desk.positions("a"))
    assert [done.start for done in desk.done(10)] == [(1, 0)]
    assert desk.done(10) == []
    desk.acknowledge("b", desk.positions("b"))
    assert [done.start for done in desk.done(10)] == [(5, 0)]


def test_who_says_so_is_sent_again_what_it_has_not() -> None:
    desk = SharedSubscriptions()
    granted(desk, desk.subscribe("a", request("a/c1", 1)))
    desk.subscribe("b", request("b/c1", 1))
    desk.ready([7], 1)
    pulled = Pulled(id=7, start=(1, 0), end=(2, 0), results=[rows(1, 1, 2, 3)])
    desk.may_pull_again(desk.pulls(lambda _: True, 10))
    assert len(desk.pulled(pulled, lambda _: True)) == 2
    assert desk.pulls(lambda _: True, 10) == []
    desk.begin_again("a", {ChannelSubscriptionId("a/c1"): (1, 1)})
    (pull,) = desk.pulls(lambda _: True, 10)
    assert pull.start == (1, 1)
    later = Pulled(id=7, start=(1, 1), end=(2, 0), results=[rows(1, 2, 3, first=1)])
    assert seen(desk.pulled(later, lambda _: True)) == [("a", 1, 1, [2, 3])]
    assert [done.start for done in desk.done(10)] == [(1, 0)], "b has acknowledged nothing"
    desk.may_pull_again([pull])
    desk.begin_again("a", {ChannelSubscriptionId("a/c1"): (1, 0)})
    assert desk.positions("a") == {ChannelSubscriptionId("a/c1"): (1, 1)}, "that is over"


def test_what_was_sent_is_not_acknowledged_because_the_data_cluster_forgot() -> None:
    desk = SharedSubscriptions()
    granted(desk, desk.subscribe("a", request("a/c1", 1)))
    desk.pulled(Pulled(id=7, start=(1, 0), end=(2, 0), results=[rows(1, 1)]), lambda _: True)
    granted(desk, desk.unknown(7), id=8, execution=2)
    desk.begin_again("a", {})
    assert desk.positions("a") == {ChannelSubscriptionId("a/c1"): (1, 0)}


class Run:
    """Clients with a few subscriptions each, executions, pulls, and people who come and go."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = MemoryCluster()
        self.cluster.rows_per_pull = self.random.choice([1, 3, 100])
        self.desk = SharedSubscriptions()
        self.took: dict[tuple[str, str], list[tuple[Position, Value]]] = {}
        self.starts: dict[tuple[str, str], tuple[int, Position]] = {}
        self.acknowledged: dict[tuple[str, str], Position] = {}
        self.away: set[str] = set()
        self.asked: list[Ask | End] = []
        self.serial = 0

    def can_take(self, client: str) -> bool:
        return client not in self.away

    def carry_out(self, orders: list[Order]) -> None:
        for order in orders:
            match order:
                case Ask() | End():
                    self.asked.append(order)
                case Tell(client=client, notice=ChannelInEffect(id=id, start=start)):
                    self.starts.setdefault((client, id), (self.n_of(id), start))
                case Push(client=client, results=results):
                    took = self.took.setdefault((client, results.id), [])
                    for row, content in enumerate(results.rows, results.first):
                        took.append(((results.execution, row), content["v"]))
                case _:
                    raise AssertionError(order)

    @staticmethod
    def n_of(id: str) -> int:
        return int(id.rsplit("-", 1)[1])

    async def step(self) -> None:
        match self.random.randrange(8):
            case 0:
                self.serial += 1
                client, n = f"c{self.random.randrange(4)}", self.random.randrange(3)
                asked = request(f"{client}/{self.serial}-{n}", self.random.choice([n, float(n)]))
                self.carry_out(self.desk.subscribe(client, asked))
            case 1 if self.starts and self.random.random() < 0.3:
                client, id = self.random.choice(sorted(self.starts))
                self.carry_out(self.desk.unsubscribe(client, ChannelSubscriptionId(id)))
                self.starts.pop((client, id))
            case 2:
                client = f"c{self.random.randrange(4)}"
                self.away ^= {client}
                if client not in self.away:
                    self.desk.wake(client)
            case 3:
                await self.post()
            case 4:
                results: dict[int, list[Row]] = {
                    id: [{"v": f"{id}.{self.cluster.execution + 1}.{k}"} for k in range(size)]
                    for id in self.cluster.ids.values()
                    if (size := self.random.choice([0, 0, 1, 5]))
                }
                self.cluster.execute(results)
                self.desk.ready(list(results), self.cluster.execution)
            case 5:
                self.go_back(f"c{self.random.randrange(4)}")
            case _:
                await self.pull()

    def go_back(self, client: str) -> None:
        """Some of what was sent to a client last has not arrived."""
        given: dict[ChannelSubscriptionId, Position] = {}
        for key in self.starts:
            if key[0] == client and self.random.random() < 0.7:
                ends = [(e, row + 1) for (e, row), _ in self.took.get(key, [])]
                position = self.random.choice([self.starts[key][1], *ends])
                given[ChannelSubscriptionId(key[1])] = position
                self.acknowledged[key] = max(position, self.acknowledged.get(key, position))
        self.desk.begin_again(client, given)
        for key, took in self.took.items():
            if key[0] == client and key in self.starts:
                position = self.acknowledged.get(key, self.starts[key][1])
                self.took[key] = [each for each in took if each[0] < position]

    async def post(self) -> None:
        asked, self.asked = self.asked, []
        for order in asked:
            if isinstance(order, End):
                await self.cluster.unsubscribe(Unsubscribe(broker="B", ended=[order.id]))
            else:
                wanted = Wanted(channel=order.channel, arguments=order.arguments)
                answer = await self.cluster.subscribe(Subscribe(broker="B", subscriptions=[wanted]))
                self.carry_out(self.desk.granted(order.key, answer.subscriptions[0]))

    async def pull(self) -> bool:
        pulls = self.desk.pulls(self.can_take, self.random.choice([1, 10]))
        if pulls and self.random.random() < 0.9:
            answer = await self.cluster.pull(Pull(broker="B", pulls=pulls))
            for pulled in answer.pulled:
                self.carry_out([*self.desk.pulled(pulled, self.can_take)])
        self.desk.may_pull_again(pulls)
        return bool(pulls)

    async def drain(self) -> None:
        for client in self.away:
            self.desk.wake(client)
        self.away.clear()
        await self.post()
        while await self.pull():
            pass

    def check(self) -> None:
        for (client, id), (n, start) in self.starts.items():
            back = self.cluster.ids[f"{float(n)}"]
            wanted = [
                ((execution, k), row["v"])
                for execution, rows in sorted(self.cluster.rows[back].items())
                for k, row in enumerate(rows)
                if (execution, k) >= start
            ]
            assert self.took.get((client, id), []) == wanted, (client, id, start)


@pytest.mark.parametrize("seed", range(60))
def test_random_histories(seed: int) -> None:
    async def history() -> None:
        run = Run(seed)
        for _ in range(300):
            await run.step()
        await run.drain()
        run.check()

    asyncio.run(history())


def test_rates_are_those_of_the_last_minute() -> None:
    rates = Rates(window_s=60)
    for id in (1, 3):
        rates.begin(id, 0.0)
    rates.begin(2, 89.0)
    rates.begin(4, 110.0)
    for second in range(0, 120, 10):
        rates.add(1, 600, float(second))
    rates.add(2, 300, 119.0)
    rates.add(4, 300, 119.0)
    found = rates.bytes_per_s([1, 2, 3, 4, 5], 119.0)
    assert found[1] == pytest.approx(60, rel=0.2)
    assert found[2] == 10.0  # In the 30 seconds since it began.
    assert found[3] == 0.0
    assert found.keys() == {1, 2, 3}  # Of those that are young nothing is known.
    assert rates.bytes_per_s([1, 2], 300.0) == {1: 0.0, 2: 0.0}
    rates.end(1)
    assert rates.bytes_per_s([1], 300.0) == {}
