"""What waits because of another path, while the network changes its shape."""

from __future__ import annotations

import asyncio

import pytest

from godwit.broker.stimuli import Hop
from godwit.client import Events
from godwit.content.messages import Publication
from godwit.migration.reshaping import ReshapingStage
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.overlay.topology import chain, topology
from godwit.runtime.reshaping_run import carry_out
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.virtual_time import run_in_virtual_time

BEFORE, AFTER = range(5), range(5, 10)


async def numbers(events: Events, count: int) -> list[object]:
    return [(await anext(events)).content["n"] for _ in range(count)]


def test_what_waits_at_a_flip_stays_in_front_of_what_comes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was not handled before the flip, so nothing has to be acknowledged before it goes on."""
    has_to_wait = MeshRouting.has_to_wait
    is_blocked = False

    def blocked(self: MeshRouting, publication: Publication, last_hop: Hop, now_s: float) -> bool:
        waits = is_blocked and last_hop.kind == "client" and not publication.is_control
        return waits or has_to_wait(self, publication, last_hop, now_s)

    monkeypatch.setattr(MeshRouting, "has_to_wait", blocked)

    async def scenario() -> list[object]:
        nonlocal is_blocked
        tree = chain(3)
        async with (
            MemoryNetwork(tree, mesh=MeshSettings(), latency_s=lambda: 0.05) as network,
            network.connect("B1", name="paul") as paul,
            network.connect("B3", name="alice") as alice,
            alice.subscribe("n >= 0") as events,
        ):
            await paul.advertise("n >= 0")
            await events.in_effect()
            is_blocked = True
            for n in BEFORE:
                await paul.publish({"n": n})
            target = topology(tree.brokers, [("B1", "B3"), ("B1", "B2")])
            record = network.plan_shape(target, "change-1", 1)
            node = network.nodes["B1"]
            done = asyncio.create_task(
                carry_out(record, network.ask_epoch, lambda _: None, brokers=tree.brokers)
            )
            async with asyncio.timeout(20.0):
                while node.epochs.status.epoch == 0:  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            for n in AFTER:
                await paul.publish({"n": n})
            await asyncio.sleep(0.5)
            is_blocked = False
            node.read_paths()
            found = await asyncio.wait_for(numbers(events, 10), 20.0)
            await paul.flush()
            assert (await done).stage is ReshapingStage.DONE
            return found

    assert run_in_virtual_time(scenario()) == [*BEFORE, *AFTER]
