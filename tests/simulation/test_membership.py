"""Brokers and links that come and go while a simulation runs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from godwit.broker.effects import CloseLink, Effect, OpenLink
from godwit.broker.modules import BrokerView, PolicyModule, Request
from godwit.broker.routing import Answer
from godwit.broker.sessions import ClientSubscription
from godwit.broker.stimuli import LinkDown, LinkKind, LinkUp, Neighbour, Stimulus
from godwit.content.filters import Filter
from godwit.errors import UsageError
from godwit.overlay.topology import chain
from godwit.overlay.tree.resync import Resync
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.attached_clients import AttachedClients
from godwit.simulation.broker_drain import drain
from godwit.simulation.oracle import Oracle
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulator import Simulator
from godwit.testing.random_membership import random_membership

X = Filter.parse("x > 0")
#: The whole sweep: `godwit replay 0 --until 500 --membership`.
SEEDS = 60


@pytest.mark.parametrize("seed", range(SEEDS))
def test_leaf_brokers_join_and_leave_without_loss(seed: int) -> None:
    run = random_membership(seed)
    assert run.is_flawless, str(run)


def _confirm_before_advertisements_are_known(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Resync, "has_advertisements_beside", lambda *_: True)


def _forget_clients_that_return(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AttachedClients, "depart", lambda *_: None)


def _leave_without_a_word(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TreeRouting, "link_down", lambda *_: [])


@pytest.mark.parametrize(
    "break_it",
    [
        _confirm_before_advertisements_are_known,
        _forget_clients_that_return,
        _leave_without_a_word,
    ],
)
def test_broken_versions_are_noticed(break_it: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(break_it)
    break_it(monkeypatch)
    for seed in range(SEEDS):
        try:
            if not random_membership(seed).is_flawless:
                return
        except (AssertionError, KeyError):
            return
    pytest.fail("no seed noticed it")


def test_a_broker_joins_serves_a_client_and_leaves() -> None:
    oracle = Oracle()
    simulator = Simulator(chain(2), seed=1, observers=[oracle])
    paul = simulator.client("paul", at="B1")
    advertisement = paul.advertise(X)
    simulator.run(until_s=1.0)
    node = simulator.add_broker("B3", ["B2"])
    alice = simulator.client("alice", at="B3")
    alice.subscribe(X)
    simulator.run(until_s=2.0)
    paul.publish(advertisement, {"x": 1})
    simulator.run(until_s=3.0)
    assert oracle.deliveries == 1
    assert simulator.topology.neighbours("B3") == ("B2",)

    with pytest.raises(UsageError, match="B3 still has clients: alice; move them away first"):
        simulator.remove_broker("B3")
    drain(simulator, "B3", lambda: "B1")
    simulator.run(until_s=10.0)
    assert alice.home.broker == "B1"
    assert node.has_left
    assert simulator.topology == chain(2)
    paul.publish(advertisement, {"x": 2})
    simulator.run()
    oracle.finish(simulator.now_s)
    assert oracle.is_satisfied
    assert oracle.deliveries == 2
    assert not simulator.brokers["B2"].broker.routing.tables().told.get("B3")
    with pytest.raises(UsageError, match="no broker B3; there are B1, B2"):
        simulator.client("bob", at="B3")


def test_a_client_that_leaves_is_forgotten() -> None:
    simulator = Simulator(chain(2), seed=1)
    alice = simulator.client("alice", at="B2")
    paul = simulator.client("paul", at="B1")
    paul.advertise(X)
    alice.subscribe(X)
    simulator.run(until_s=1.0)
    node = simulator.brokers["B2"]
    assert [client.name for client in node.clients] == ["alice"]
    alice.leave()
    simulator.run()
    assert not node.clients
    assert all(each.broker.routing.subscription_count == 0 for each in simulator.brokers.values())


def test_a_move_that_takes_too_long_ends_where_it_began() -> None:
    oracle = Oracle()
    link = LinkOptions(latency_s_min=2.0, latency_s_mean=2.0)
    simulator = Simulator(chain(2), seed=1, link=link, observers=[oracle])
    alice, paul = simulator.client("alice", at="B1"), simulator.client("paul", at="B1")
    advertisement = paul.advertise(X)
    alice.subscribe(X)
    simulator.run(until_s=30.0)
    for client in (alice, paul):
        client.move("B2", within_s=5.0)
    simulator.run(until_s=60.0)
    assert (alice.home.broker, paul.home.broker) == ("B1", "B1")
    assert not alice.mover.is_moving
    assert not paul.mover.is_moving
    paul.publish(advertisement, {"x": 1})
    for client in (alice, paul):  # Everyone can move again afterwards.
        client.move("B2", within_s=60.0)
    simulator.run()
    paul.publish(advertisement, {"x": 2})
    simulator.run()
    oracle.finish(simulator.now_s)
    assert (alice.home.broker, paul.home.broker) == ("B2", "B2")
    assert oracle.is_satisfied
    assert oracle.deliveries == 2


class ClosesSoftLinks(TreeRouting):
    def link_up(self, neighbour: Neighbour, kind: LinkKind = LinkKind.PRIMARY) -> list[Answer]:
        answers = super().link_up(neighbour, kind)
        return [*answers, CloseLink(neighbour)] if kind is LinkKind.SOFT else answers


class Recorder(PolicyModule):
    name = "recorder"

    def start(self, view: BrokerView, now_s: float) -> Sequence[Request]:
        self.view = view
        return ()


def test_a_router_opens_and_closes_links(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = Simulator(chain(1), seed=1, overlay=ClosesSoftLinks)
    broker = simulator.add_broker("B2").broker
    handle, seen = broker.handle, []

    def watched(stimulus: Stimulus, *, now_s: float) -> list[Effect]:
        seen.append(stimulus)
        return handle(stimulus, now_s=now_s)

    monkeypatch.setattr(broker, "handle", watched)
    open_link = OpenLink("B2", "", LinkKind.SOFT)
    simulator.brokers["B1"].perform([open_link, open_link])
    simulator.run()
    b1 = Neighbour("B1")
    links = [each for each in seen if isinstance(each, LinkUp | LinkDown)]
    assert links == [LinkUp(b1, LinkKind.SOFT), LinkDown(b1)], "though both sides closed it"
    assert simulator.topology.links == frozenset()


def test_a_module_sees_neighbours_subscriptions_and_resources() -> None:
    module = Recorder()
    simulator = Simulator(
        chain(2),
        seed=1,
        modules=lambda name: [module] if name == "B1" else [],
        resources=BrokerResources(output_bandwidth_bytes_s=5_000.0, memory_bytes=2_800.0),
    )
    simulator.run(until_s=1.0)
    alice = simulator.client("alice", at="B1")
    id = alice.subscribe(X)
    simulator.run(until_s=2.0)
    view = module.view
    assert view.broker == "B1"
    assert view.neighbours == {Neighbour("B2"): LinkKind.PRIMARY}
    assert list(view.subscriptions()) == [ClientSubscription("alice", id, X)]
    assert view.output_bandwidth_bytes_s == 5_000.0
    assert view.memory_utilisation == 0.5, "one subscription of 1,400 bytes"
    simulator.add_broker("B3", ["B1"])
    assert Neighbour("B3") in view.neighbours
    alice.unsubscribe(id)
    simulator.run(until_s=3.0)
    assert not list(view.subscriptions())
