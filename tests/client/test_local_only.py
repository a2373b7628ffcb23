"""A subscription that no other broker learns of."""

from __future__ import annotations

from tests.asynchronous import run, until

from godwit.overlay.topology import chain
from godwit.testing.memory_network import MemoryNetwork

X = "x is a number"


def test_a_local_subscription_receives_what_passes_its_broker_anyway() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2)) as network,
            network.connect("B1", name="alice") as alice,
            network.connect("B1", name="bob") as bob,
            network.connect("B2", name="paul") as paul,
        ):
            await paul.advertise(X)
            async with alice.subscribe(X, local_only=True) as passing:
                await passing.in_effect()
                assert list(network.tables()["B2"].subscriptions) == []
                await paul.publish({"x": 1})
                await paul.flush()
                async with bob.subscribe("x > 5") as wanted:
                    await wanted.in_effect()
                    await paul.publish({"x": 2})
                    await paul.publish({"x": 6})
                    await until(lambda: len(wanted.waiting) == 1)
                    await until(lambda: len(passing.waiting) == 1)
            assert (await anext(aiter(passing))).content == {"x": 6}

    run(scenario())
