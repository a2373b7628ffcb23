"""Plans carried out by the coordinator in memory, with a crash at the moment that matters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from godwit.api.network_api import ChangeKind, ChangeRequest, ChangeState, StepKind
from godwit.broker.stimuli import AbortEpoch, BuildEpoch, Neighbour
from godwit.overlay.topology import chain, topology
from godwit.runtime.settings import Limits
from godwit.testing.memory_coordinator import MemoryCoordinator
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.virtual_time import run_in_virtual_time

LIMITS = Limits(link_s=60.0, restart_s=5.0)
#: Much less than `link_s`: no broker waits for one that is gone.
SOON_S = 20.0

Scene = Callable[[MemoryNetwork, MemoryCoordinator], Awaitable[None]]


def plan(*brokers: str, links: list[tuple[str, str]] | None = None) -> ChangeRequest:
    """The first broker is the root; all clients go there."""
    clients = dict.fromkeys(("alice", "bob"), brokers[0])
    return ChangeRequest(
        kind=ChangeKind.ALLOCATE,
        brokers=list(brokers),
        link=brokers[0],
        links=links or [],
        clients=clients,
    )


def played(scene: Scene) -> None:
    async def play() -> None:
        async with (
            MemoryNetwork(chain(3), limits=LIMITS) as network,
            MemoryCoordinator(network, random=Random(1)) as coordinator,
        ):
            await asyncio.sleep(2.0)  # Brokers report.
            await scene(network, coordinator)

    run_in_virtual_time(play(), clocks=True)


async def restarted(network: MemoryNetwork, broker: str) -> None:
    network.crash(broker)
    await asyncio.sleep(0.3)
    await network.restart(broker)


async def carried_out(coordinator: MemoryCoordinator, request: ChangeRequest) -> None:
    begun = await coordinator.begin(request)
    change = await coordinator.ended(begun.number)
    assert change.state is ChangeState.DONE, change.because


async def delivered(network: MemoryNetwork, sender: str, receiver: str) -> None:
    """A publication between new clients of two brokers arrives soon."""
    async with asyncio.timeout(SOON_S):
        async with network.connect(sender) as alice, network.connect(receiver) as bob:
            await alice.advertise("x > 0")
            async with bob.subscribe("x > 0") as events:
                await events.in_effect()
                await alice.publish({"x": 1})
                assert (await anext(events)).content == {"x": 1}


def test_brokers_start_and_leave_as_the_plan_says() -> None:
    async def scene(network: MemoryNetwork, coordinator: MemoryCoordinator) -> None:
        await carried_out(coordinator, plan("B3", "B2", links=[("B2", "B3")]))
        assert sorted(network.nodes) == ["B2", "B3"]
        await delivered(network, "B2", "B3")
        await carried_out(coordinator, plan("B1", "B3", links=[("B1", "B3")]))
        assert sorted(network.nodes) == ["B1", "B3"]
        await delivered(network, "B1", "B3")

    played(scene)


def test_a_broker_that_restarts_is_not_told_to_link_one_that_has_left_and_is_back() -> None:
    async def scene(network: MemoryNetwork, coordinator: MemoryCoordinator) -> None:
        await carried_out(coordinator, plan("B3"))
        begun = await coordinator.begin(plan("B3", "B1", links=[("B1", "B3")]))
        await until(lambda: "B1" in network.nodes and network.nodes["B1"].epochs.is_outside)
        await restarted(network, "B3")  # No neighbour tells it which shape is in use.
        async with asyncio.timeout(SOON_S):
            change = await coordinator.ended(begun.number)
        assert change.state is ChangeState.DONE, change.because
        await delivered(network, "B1", "B3")

    played(scene)


def test_a_broker_that_rejoins_does_not_spread_a_shape_with_one_that_has_left() -> None:
    async def scene(network: MemoryNetwork, coordinator: MemoryCoordinator) -> None:
        begun = await coordinator.begin(plan("B2", "B3", links=[("B2", "B3")]))
        await until(lambda: has_begun(coordinator, StepKind.DRAIN))
        await restarted(network, "B3")
        await coordinator.ended(begun.number)
        assert "B1" not in network.nodes
        assert network.nodes["B3"].is_recovering
        await restarted(network, "B2")  # B3 tells it.
        await delivered(network, "B2", "B3")

    played(scene)


def test_a_tree_is_tried_again_if_a_broker_fails_before_it_is_committed() -> None:
    async def scene(network: MemoryNetwork, coordinator: MemoryCoordinator) -> None:
        request = ChangeRequest(
            kind=ChangeKind.RESHAPE,
            brokers=["B1", "B2", "B3"],
            links=[("B1", "B3"), ("B2", "B3")],
        )
        begun = await coordinator.begin(request)
        await until(lambda: network.nodes["B2"].epochs.status.phase in ("building", "built"))
        await restarted(network, "B2")
        changes = coordinator.core.changes
        await until(lambda: "is tried again: " in changes.change(begun.number).steps[0].says)
        change = await coordinator.ended(begun.number)
        assert change.state is ChangeState.DONE, change.because
        await delivered(network, "B1", "B2")

    played(scene)


def test_a_newcomer_that_is_killed_does_not_wait_for_an_epoch_that_all_have_left() -> None:
    async def scene(network: MemoryNetwork, coordinator: MemoryCoordinator) -> None:
        await carried_out(coordinator, plan("B3"))
        begun = await coordinator.begin(plan("B1", "B2", links=[("B1", "B2")]))
        await until(lambda: has_begun(coordinator, StepKind.DRAIN))
        await restarted(network, "B1")  # B3 tells it of the epoch before, and leaves.
        await coordinator.ended(begun.number)
        await until(lambda: network.nodes["B1"].epochs.status.phase == "steady")
        await until(lambda: not network.nodes["B1"].is_recovering)
        await delivered(network, "B1", "B2")

    played(scene)


def test_links_of_an_epoch_that_is_given_up_are_not_made_again() -> None:
    async def scene(network: MemoryNetwork, _coordinator: MemoryCoordinator) -> None:
        target = topology(["B1", "B2", "B3"], [("B1", "B3"), ("B2", "B3")])
        shape = network.plan_shape(target, "given-up", 1).shape
        for broker in target.brokers:
            await network.ask_epoch(broker, BuildEpoch("given-up", shape))
        await until(lambda: lanes(network) == {0, 1})
        given_up = [network.ask_epoch(each, AbortEpoch("given-up", 1)) for each in target.brokers]
        await asyncio.gather(*given_up)
        await asyncio.sleep(1.0)
        assert lanes(network) == {0}
        assert not any(node.epochs.knows(1) for node in network.nodes.values())

    played(scene)


def test_a_broker_that_was_killed_while_it_left_is_not_waited_for() -> None:
    """It is started again, and told that it is not part of the network any more."""

    async def scene(network: MemoryNetwork, coordinator: MemoryCoordinator) -> None:
        begun = await coordinator.begin(plan("B3", "B2", links=[("B2", "B3")]))
        await until(lambda: has_begun(coordinator, StepKind.LEAVE))
        network.crash("B1")
        async with asyncio.timeout(SOON_S):
            await coordinator.ended(begun.number)
        await network.restart("B1")
        await until(lambda: network.nodes["B1"].epochs.is_outside)
        links = [("B1", "B3"), ("B2", "B3")]
        await carried_out(coordinator, plan("B3", "B1", "B2", links=links))
        await delivered(network, "B1", "B2")

    played(scene)


def lanes(network: MemoryNetwork) -> set[int]:
    nodes = network.nodes.values()
    return {hop.lane for node in nodes for hop in node.ports if isinstance(hop, Neighbour)}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_S):
        while not condition():  # noqa: ASYNC110  It has no event.
            await asyncio.sleep(0.01)


def has_begun(coordinator: MemoryCoordinator, kind: StepKind) -> bool:
    current = coordinator.core.changes.current
    assert current is not None, "the change has ended"
    return any(step.kind is kind and step.began_s is not None for step in current.steps)
