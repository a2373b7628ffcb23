"""Live brokers in clusters: links, names, gaps, restarts; B1 B2 B3 is a cluster, B4 B5 B6 one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.asynchronous import until
from tests.runtime.scenes import numbers, publish, publishing, subscribed
from tests.runtime.test_gaps import DOWN_S, LIMITS, gap_of

from godwit.api.network_api import Authority, Order
from godwit.broker.stimuli import BuildEpoch, Hop, LinkKind, Neighbour
from godwit.client import Client, Events
from godwit.content.messages import Sweep
from godwit.coordinator.cluster_rule import ClusterTuningSettings
from godwit.coordinator.settings import load_settings
from godwit.errors import RefusedError, StayedError, UsageError
from godwit.http.errors import RestError
from godwit.migration.reshaping import shape_of
from godwit.overlay.clusters.cluster_structure import arrange
from godwit.overlay.topology import chain
from godwit.runtime.broker_orders import BrokerOrders
from godwit.runtime.outbox import Outbox
from godwit.runtime.settings import (
    Limits,
    NetworkSettings,
    dump_network,
    load_network,
    network_of,
)
from godwit.runtime.toml_writer import toml_text
from godwit.sharing.gateway import Gateway
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.virtual_time import run_in_virtual_time

SIX = chain(6)
STRUCTURE = arrange(SIX.brokers, 2)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    run_in_virtual_time(asyncio.wait_for(scenario, 600.0))


def two_clusters() -> MemoryNetwork:
    return MemoryNetwork(SIX, clusters=2, limits=LIMITS)


# -- links and clients -------------------------------------------------------------------------


def test_brokers_dial_their_mates_and_rings() -> None:
    async def scenario() -> None:
        async with two_clusters() as network:
            for name, node in network.nodes.items():
                linked = {hop.name for hop in node.ports}
                assert linked == set(STRUCTURE.links(name))
                kinds = node.broker.routing.neighbours
                primary = {hop.name for hop, kind in kinds.items() if kind is LinkKind.PRIMARY}
                assert primary == set(STRUCTURE.backbone.neighbours(name))
            await until(
                lambda: all(node.links.status().is_complete for node in network.nodes.values())
            )

    run(scenario())


def test_a_publication_needs_two_links_at_most() -> None:
    async def scenario() -> None:
        async with (
            two_clusters() as network,
            publishing(network, "B2") as paul,
            subscribed(network, "B6", "alice") as (_, far),
            subscribed(network, "B5", "bob") as (_, on_the_ring),
            subscribed(network, "B1", "carol") as (_, mate),
            subscribed(network, "B2", "dave") as (_, own),
        ):
            await publish(paul, range(3))
            for events, hops in ((far, 2), (on_the_ring, 1), (mate, 1), (own, 0)):
                assert [(await anext(events)).hops for _ in range(3)] == [hops] * 3

    run(scenario())


def test_a_name_belongs_to_one_session_in_the_network() -> None:
    async def scenario() -> None:
        async with two_clusters() as network, network.connect("B3", name="alice"):
            with pytest.raises(RefusedError, match="alice"):
                await network.connect("B5", name="alice").__aenter__()
            async with network.connect("B5", name="bob"):
                pass

    run(scenario())


def test_clients_move_while_they_publish_and_lose_nothing() -> None:
    async def scenario() -> None:
        async with (
            two_clusters() as network,
            publishing(network, "B2") as paul,
            subscribed(network, "B6", "alice") as (alice, events),
        ):
            going_on = asyncio.create_task(publish(paul, range(200)))
            for to in ("B5", "B1", "B2"):
                await alice.move(network.url(to))
            for to in ("B3", "B4"):
                await paul.move(network.url(to))
            await going_on
            await publish(paul, range(200, 203))
            assert await numbers(events, 203) == list(range(203))
            assert (alice.session.broker, paul.session.broker) == ("B2", "B4")

    run(scenario())


def test_a_client_stays_while_a_broker_does_not_answer() -> None:
    async def scenario() -> None:
        async with (
            two_clusters() as network,
            publishing(network, "B2") as paul,
            subscribed(network, "B6", "alice") as (alice, events),
        ):
            network.crash("B3")
            with pytest.raises(StayedError):
                await alice.move(network.url("B5"), within_s=1.0)
            await network.restart("B3")
            await publish(paul, range(3))
            assert await numbers(events, 3) == [0, 1, 2]

    run(scenario())


def test_clusters_do_not_become_a_tree_by_its_links_alone() -> None:
    async def scenario() -> None:
        async with two_clusters() as network:
            b1 = network.nodes["B1"].broker.routing
            await until(lambda: b1.is_complete)
            shape = shape_of(SIX, 1, {name: network.url(name) for name in SIX.brokers}, follows=0)
            with pytest.raises(UsageError, match="are not those of its clusters"):
                await network.ask_epoch("B1", BuildEpoch("c1", shape))

    run(scenario())


def test_a_broker_does_not_leave_its_mates() -> None:
    async def scenario() -> None:
        async with two_clusters() as network:
            node = network.nodes["B2"]
            orders = BrokerOrders(
                node, Gateway(node), forget=lambda _broker: None, has_coordinator=False
            )
            with pytest.raises(RestError, match="has mates, which rely on it"):
                orders.obey(Order(authority=Authority(1, "a"), command="leave"))

    run(scenario())


# -- failures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", SIX.brokers)
def test_a_broker_that_restarts_in_time_loses_nothing(failing: str) -> None:
    """Its mates keep what it had, and tell it what they have; publications wait for that."""

    async def scenario() -> None:
        async with (
            two_clusters() as network,
            publishing(network, "B2") as paul,
            publishing(network, "B4", "petra") as petra,
            subscribed(network, "B6", "alice") as (_, far),
            subscribed(network, "B1", "bob") as (_, near),
        ):
            await publish(paul, range(5))
            network.crash(failing)
            publishing_on = asyncio.create_task(publish(paul, range(5, 10)))
            await asyncio.sleep(1.0)
            await network.restart(failing)
            await publishing_on
            await publish(petra, range(10, 15))
            for events in (far, near):
                assert await numbers(events, 15) == list(range(15))
            assert not paul.gaps.seen

    run(scenario())


@pytest.mark.parametrize("failing", ["B1", "B2", "B4", "B6"])
def test_clients_know_of_a_broker_that_was_given_up_until_it_is_back(failing: str) -> None:
    async def scenario() -> None:
        async with (
            two_clusters() as network,
            publishing(network, "B3") as paul,
            subscribed(network, "B5", "alice") as (alice, events),
        ):
            network.crash(failing)
            await asyncio.sleep(DOWN_S)
            assert {gap.broker for gap in paul.gaps.open} == {failing}
            assert {gap.broker for gap in alice.gaps.open} == {failing}
            await publish(paul, range(3))
            assert await numbers(events, 3) == [0, 1, 2], "the other brokers go on"

            await network.restart(failing)
            for client in (paul, alice):
                await gap_of(client, failing, is_over=True)
                await until(lambda client=client: not client.gaps.open)  # type: ignore[misc]
            async with subscribed(network, failing, "late") as (_, late):
                await publish(paul, range(3, 6))
                assert await numbers(late, 3) == [3, 4, 5]

    run(scenario())


def test_a_link_of_a_ring_that_is_given_up_alone_is_a_gap() -> None:
    """Both brokers are there, and other links reach them."""

    async def scenario() -> None:
        async with (
            two_clusters() as network,
            publishing(network, "B3") as paul,
            subscribed(network, "B5", "alice") as (alice, events),
        ):
            for name, other in (("B3", "B6"), ("B6", "B3")):
                port = network.nodes[name].ports[Neighbour(other)]
                port.hang_up()
                network.nodes[name].remove(port, "asleep")
            await until(lambda: {gap.broker for gap in alice.gaps.open} == {"B3", "B6"})
            await until(lambda: not alice.gaps.open)  # The dialler makes the link again.
            await publish(paul, range(3))
            assert await numbers(events, 3) == [0, 1, 2]

    run(scenario())


# -- the file ----------------------------------------------------------------------------------


def test_a_network_file_has_the_number_of_clusters_and_no_links(tmp_path: Path) -> None:
    network = network_of(SIX, clusters=2, port=7400)
    text = dump_network(network)
    assert "clusters = 2" in text
    assert "links" not in text
    file = tmp_path / "net.toml"
    file.write_text(text)

    assert load_network(file) == network
    assert network.topology == STRUCTURE.topology
    assert network.neighbours(network.of("B2")) == ["B1", "B3", "B5"]


def test_a_number_that_is_open_begins_with_the_root_of_the_brokers(tmp_path: Path) -> None:
    network = network_of(SIX, clusters="auto", port=7400)
    assert network.finds_clusters
    assert network.topology == STRUCTURE.topology
    file = tmp_path / "net.toml"
    file.write_text(f"{dump_network(network)}[services.coordinator.clusters]\nhold_s = 60.0\n")
    loaded = load_network(file)
    assert loaded.clusters == "auto"
    assert loaded.services.coordinator == {"clusters": {"hold_s": 60.0}}
    assert load_settings(file_of(tmp_path, loaded)).clusters == ClusterTuningSettings(hold_s=60.0)
    assert not network_of(SIX, clusters=2).finds_clusters


def file_of(folder: Path, network: NetworkSettings) -> Path:
    """The settings of the coordinator as `godwit up` writes them."""
    assert network.services.coordinator is not None
    path = folder / "coordinator.toml"
    path.write_text(toml_text(network.services.coordinator))
    return path


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('overlay = "clusters"\nclusters = "many"', "clusters"),
        ('overlay = "clusters"', "need each other"),
        ("clusters = 2", "need each other"),
        ('overlay = "clusters"\nclusters = 3', "3 clusters of 2 brokers"),
        ('overlay = "clusters"\nclusters = 0', "clusters"),
        ('overlay = "clusters"\nclusters = 2\n[placement]\npolicy = "grape"', "placement"),
    ],
)
def test_a_file_that_is_not_a_structure_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "net.toml"
    file.write_text(text + '\n[[broker]]\nid = "B1"\n[[broker]]\nid = "B2"\n')
    with pytest.raises(UsageError, match=reason):
        load_network(file)


def test_links_that_do_not_follow_from_the_clusters_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    lines = ['overlay = "clusters"', "clusters = 2"]
    lines += [f'[[broker]]\nid = "{id}"' for id in ("B1", "B2", "B3")]
    lines += ['links = ["B2"]']
    file.write_text("\n".join(lines))
    with pytest.raises(UsageError, match="links follow from `clusters`"):
        load_network(file)


# -- acknowledgement ---------------------------------------------------------------------------


async def publish_and_move_in_all_directions() -> None:
    """All brokers publish to all over narrow windows, and publishers move."""
    limits = Limits(window_bytes=1_024, patience_s=60.0)
    async with (
        MemoryNetwork(SIX, clusters=3, limits=limits, latency_s=lambda: 0.001) as network,
        AsyncExitStack() as stack,
    ):
        streams: list[Events] = []
        publishers: list[Client] = []
        for number, broker in enumerate(SIX.brokers):
            enter = stack.enter_async_context
            _, events = await enter(subscribed(network, broker, f"alice{number}"))
            streams.append(events)
            publishers.append(await enter(publishing(network, broker, f"paul{number}")))
        async with asyncio.TaskGroup() as group:
            for events in streams:
                group.create_task(numbers(events, 6 * 100))
            for number, client in enumerate(publishers):
                group.create_task(publish(client, range(100)))
                target = SIX.brokers[(number + 2) % 6]
                group.create_task(client.move(network.url(target), within_s=60.0))


def test_the_waiting_for_acknowledgements_has_no_cycle() -> None:
    run(publish_and_move_in_all_directions())


def test_answers_that_were_waited_for_would_block_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def put_sweep(outbox: Outbox, frame: bytes, to: Hop, _sweep: Sweep) -> None:
        outbox._put_copies(frame, (to,), is_control=False)

    monkeypatch.setattr(Outbox, "_put_sweep", put_sweep)
    with pytest.raises(ExceptionGroup):
        run(publish_and_move_in_all_directions())
