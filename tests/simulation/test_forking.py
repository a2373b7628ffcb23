"""A run that is forked after its set-up goes on as if it had not been."""

from __future__ import annotations

import os
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, Pipe

import pytest

from godwit.broker.modules import BrokerView, PolicyModule, Request
from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.simulation.forking import BranchError, fork
from godwit.simulation.simulator import Simulator
from godwit.simulation.statistics import Statistics

SCENARIO = StockScenario(
    brokers=5,
    publishers=3,
    subscribers_per_publisher=10,
    brokers_with_subscribers=4,
    joining_s=5.0,
    duration_s=20.0,
)


class Counter(PolicyModule):
    """Counts the brokers in which it was started."""

    name = "counter"
    started: list[str] = []  # noqa: RUF012  Of the process, which is a branch.

    def start(self, view: BrokerView, now_s: float) -> Sequence[Request]:
        self.started.append(view.broker)
        return ()


def _finish(simulator: Simulator, statistics: Statistics) -> tuple[int, float, float]:
    simulator.run(until_s=25.0)
    return statistics.deliveries, statistics.delay_s().p99, simulator.now_s


def test_every_branch_starts_from_the_same_network() -> None:
    whole = Statistics()
    straight = _finish(SCENARIO.build(seed=1, observers=(whole,)), whole)
    assert straight[0] > 0

    statistics = Statistics()
    simulator = SCENARIO.build(seed=1, observers=(statistics,))
    simulator.run(until_s=6.0)

    def with_modules(branch: Simulator) -> object:
        branch.install(lambda _name: [Counter()])
        return _finish(branch, statistics), len(Counter.started)

    found = fork(
        simulator,
        {
            "as it is": lambda branch: (_finish(branch, statistics), 0),
            "again": lambda branch: (_finish(branch, statistics), 0),
            "with modules": with_modules,
        },
        jobs=2,
    )
    assert list(found) == ["as it is", "again", "with modules"]
    assert found["as it is"] == found["again"] == (straight, 0)
    assert found["with modules"] == (straight, 5)
    assert simulator.now_s == 6.0, "the parent has not moved"
    assert not Counter.started
    assert _finish(simulator, statistics) == straight, "and can go on"


def _in_a_worker(sender: Connection) -> None:
    sender.send(fork(SCENARIO.build(seed=1), {"branch": lambda simulator: simulator.now_s}))


def test_a_worker_of_the_laboratory_may_fork() -> None:
    """Such workers are daemons, whose children `multiprocessing` refuses to start."""
    receiver, sender = Pipe(duplex=False)
    worker = get_context("fork").Process(target=_in_a_worker, args=(sender,), daemon=True)
    worker.start()
    sender.close()
    assert receiver.recv() == {"branch": 0.0}
    worker.join()


def test_a_branch_whose_process_dies_is_named() -> None:
    with pytest.raises(BranchError, match="branch bad: its process died, exit 3"):
        fork(SCENARIO.build(seed=1), {"bad": lambda _: os._exit(3)})


def test_a_branch_that_fails_says_which_and_why() -> None:
    simulator = SCENARIO.build(seed=1)
    with pytest.raises(BranchError, match=r"(?s)branch bad failed:.*division by zero"):
        fork(simulator, {"good": lambda _: 1, "bad": lambda _: 1 / 0})
