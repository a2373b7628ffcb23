"""What a broker obeys, and what it says about itself: broker_orders.py."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.asynchronous import run

from godwit.api.network_api import Authority, Command, Order
from godwit.errors import RefusedError
from godwit.http.errors import RestError
from godwit.overlay.topology import chain
from godwit.runtime.broker_orders import BrokerOrders
from godwit.sharing.gateway import Gateway
from godwit.testing.memory_network import MemoryNetwork

FIRST, SECOND = Authority(1, "a"), Authority(2, "b")


def order(command: Command, authority: Authority = FIRST, **fields: str) -> Order:
    return Order(authority=authority, command=command, **fields)


@contextlib.asynccontextmanager
async def stage(
    broker: str = "B3", *, has_coordinator: bool = False
) -> AsyncIterator[tuple[MemoryNetwork, BrokerOrders]]:
    async with MemoryNetwork(chain(3)) as network:
        node = network.nodes[broker]
        orders = BrokerOrders(
            node, Gateway(node), forget=lambda _broker: None, has_coordinator=has_coordinator
        )
        yield network, orders


def refusal(orders: BrokerOrders, given: Order) -> tuple[int, str]:
    with pytest.raises(RestError) as refused:
        orders.obey(given)
    return refused.value.status, str(refused.value)


def test_it_obeys_no_lower_authority_and_of_two_equal_ones_the_first() -> None:
    async def scenario() -> None:
        async with stage() as (_, orders):
            orders.obey(order("drain", SECOND))
            status, says = refusal(orders, order("undrain", FIRST))
            assert status == 409
            assert "obeys authority 2 (coordinator b, run 1), and this order has 1" in says
            assert orders.node.is_draining, "a refused order changes nothing"
            status, _ = refusal(orders, order("undrain", Authority(2, "twin", run=9)))
            assert status == 409
            orders.obey(order("drain", Authority(2, "b", run=2)))
            assert refusal(orders, order("undrain", SECOND))[0] == 409, "an earlier run"
            orders.obey(order("undrain", Authority(3, "c")))
            assert not orders.node.is_draining
            assert refusal(orders, order("drain", SECOND))[0] == 409
            assert orders.refused == 4
            assert orders.account().authority == Authority(3, "c")

    run(scenario())


def test_moves_of_a_coordinator_are_orders_as_well() -> None:
    async def scenario() -> None:
        async with stage() as (_, orders):
            orders.check(SECOND, "move")
            with pytest.raises(RestError, match="obeys authority 2"):
                orders.check(FIRST, "move")

    run(scenario())


def test_after_a_restart_it_first_asks_who_is_in_charge() -> None:
    async def scenario() -> None:
        async with stage(has_coordinator=True) as (_, orders):
            status, says = refusal(orders, order("drain", FIRST))
            assert (status, "its coordinator has not answered yet" in says) == (503, True)
            orders.on_registered(SECOND)
            assert refusal(orders, order("drain", FIRST))[0] == 409
            orders.obey(order("drain", SECOND))
            orders.on_registered(FIRST)
            assert orders.authority == SECOND, "a lower one is not learnt"

    run(scenario())


def test_a_broker_that_is_drained_admits_no_new_client() -> None:
    async def scenario() -> None:
        async with (
            stage() as (network, orders),
            network.connect("B3", name="ann") as ann,
            ann.subscribe("x > 1") as events,
        ):
            await events.in_effect()
            account = orders.obey(order("drain", reason="new disk"))
            assert (account.is_draining, account.because) == (True, "new disk")
            assert orders.clients().connected == ["ann"]
            with pytest.raises(RefusedError, match="being drained"):
                async with network.connect("B3", name="bob"):
                    pass
            orders.obey(order("undrain"))
            async with network.connect("B3", name="bob"):
                pass

    run(scenario())


@pytest.mark.parametrize(
    ("broker", "clients", "says"),
    [
        ("B2", 0, "broker B2 links B1, B3: not a leaf"),
        ("B3", 1, "broker B3 still has 1 clients: drain it first"),
    ],
)
def test_it_does_not_leave_if_it_is_needed(broker: str, clients: int, says: str) -> None:
    async def scenario() -> None:
        async with stage(broker) as (network, orders), contextlib.AsyncExitStack() as stack:
            for number in range(clients):
                client = network.connect(broker, name=f"c{number}")
                await stack.enter_async_context(client)
            status, text = refusal(orders, order("leave"))
            assert status == 409
            assert says in text
            assert orders.ending is None
            assert not orders.node.is_draining

    run(scenario())


def test_an_end_is_for_one_run_only() -> None:
    async def scenario() -> None:
        async with stage() as (_, orders):
            orders.is_supervised = True
            orders.obey(order("restart", start="another run"))
            orders.obey(order("leave", start="another run"))
            assert orders.ending is None
            orders.obey(order("restart", start=orders.start))
            async with asyncio.timeout(5):
                await orders.ended.wait()
            assert orders.ending == "restart"

    run(scenario())


def test_it_is_not_restarted_if_nothing_would_start_it_again() -> None:
    async def scenario() -> None:
        async with stage() as (_, orders):
            status, says = refusal(orders, order("restart"))
            assert (status, "would not be started again" in says) == (409, True)
            assert orders.ending is None

    run(scenario())


def test_what_it_says_about_itself() -> None:
    async def scenario() -> None:
        async with stage("B2") as (network, orders):
            async with network.connect("B2", name="ann"):
                account = orders.account()
            assert (account.broker, account.clients, account.is_ready) == ("B2", 1, True)
            links = [(link.neighbour, link.status) for link in account.links]
            assert links == [("B1", "up"), ("B3", "up")]
            network.crash("B3")
            async with asyncio.timeout(5):
                while orders.account().missing != ["B3 (behind B2)"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert ("B3", "away") in [(x.neighbour, x.status) for x in orders.account().links]

    run(scenario())
