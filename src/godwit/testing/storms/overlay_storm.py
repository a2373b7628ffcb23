"""One storm of a network that changes from overlay to overlay: tree, clusters, mesh.

As `reshaping_storm`, with live brokers in virtual time and overlays of any kind; soft links of
meshes open and close at random.  In every other storm a broker, a link or the coordinator fails in
a random phase of each change; a broker that is started again has the configuration of the first
overlay.  In the others nothing fails.

`delta_move_storm` is the same in a mesh that stays one: brokers leave a neighbour for another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from godwit.migration.reshaping import ReshapingRecord, ReshapingStage
from godwit.overlay import OVERLAYS
from godwit.overlay.clusters.cluster_structure import structure_of
from godwit.overlay.mesh.mesh_settings import mesh_settings_of
from godwit.overlay.topology import random_tree
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.overlay_shapes import OverlayShape, shape_for, soft_link_modules
from godwit.testing.random_reshaping import after_delta_move, shuffled_tree
from godwit.testing.storms.reshaping_storm import (
    PUBLISH_S,
    StormyChanges,
    some_moves,
    unfinished,
)
from godwit.testing.storms.storm import Storm, becomes_true, check_deliveries, count_deliveries
from godwit.testing.storms.storm_checks import stale_ports
from godwit.testing.storms.storm_clients import StormClient, some_clients
from godwit.testing.table_checks import cluster_holding_errors, holding_errors, holdings_of
from godwit.testing.virtual_time import run_in_virtual_time


def overlay_storm(seed: int) -> Storm:
    """The storm of this seed, always the same; `wrong` is empty unless a guarantee was broken."""
    return run_in_virtual_time(_storm(Storm(seed), Random(f"overlay storm {seed}")), seed=seed)


def delta_move_storm(seed: int) -> Storm:
    """The same for a mesh, in which only brokers around one of them change."""
    random = Random(f"delta move storm {seed}")
    storm = _storm(Storm(seed), random, kinds=("mesh",), brokers=(3, 6))
    return run_in_virtual_time(storm, seed=seed)


async def _storm(
    result: Storm,
    random: Random,
    *,
    kinds: Sequence[str] = tuple(sorted(OVERLAYS)),
    brokers: tuple[int, int] = (2, 6),
) -> Storm:
    tree = random_tree(random.randint(*brokers), random)
    result.brokers = len(tree.brokers)
    latency_s = random.choice((0.0001, 0.002, 0.02))
    kind = random.choice(kinds)
    shape = shape_for(OVERLAYS[kind], tree, seed=random.randrange(2**32))
    async with MemoryNetwork(
        tree,
        clusters=shape.settings.get("clusters"),
        mesh=mesh_settings_of(shape.settings) if kind == "mesh" else None,
        modules=soft_link_modules(result.seed, every_s=random.choice((0.1, 1.0))),
        latency_s=lambda: random.uniform(0.0, latency_s),
    ) as network:
        clients = await some_clients(network, tree.brokers, random)
        make = _OverlayStormChanges if len(kinds) > 1 else _DeltaMoveStormChanges
        changes = make(result, network, random)
        changes.is_calm = result.seed % 2 == 0
        changes.now = kind, shape
        until_s = asyncio.get_running_loop().time() + PUBLISH_S
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.publish_until(until_s))
            group.create_task(some_moves(clients, network, random))
            group.create_task(changes.run())
        await changes.faults.all_restarted()
        result.happened += [f"begins as {kind}", *changes.faults.happened]
        await _check_when_quiet(result, network, clients, changes)
        count_deliveries(result, clients)
        for client in clients:
            await client.stop()
    return result


class _OverlayStormChanges(StormyChanges):
    now: tuple[str, OverlayShape]
    """The overlay in use, and its shape."""

    next: tuple[str, OverlayShape]

    def _plan(self, change: str, epoch: int) -> ReshapingRecord:
        network = self._network
        kind, shape = self.next = self._next_shape(self._random)
        self.faults.happened.append(f"{change}: to {kind} {dict(shape.settings)}")
        return network.plan_shape(
            shape.topology, change, epoch, overlay=kind, settings=shape.settings
        )

    def _next_shape(self, random: Random) -> tuple[str, OverlayShape]:
        kind = random.choice(sorted(OVERLAYS))
        tree = shuffled_tree(self._network.topology, random)
        return kind, shape_for(OVERLAYS[kind], tree, seed=random.randrange(2**32))

    def _ended(self, record: ReshapingRecord) -> None:
        super()._ended(record)
        if record.stage is ReshapingStage.DONE:
            self.now = self.next


class _DeltaMoveStormChanges(_OverlayStormChanges):
    def _next_shape(self, random: Random) -> tuple[str, OverlayShape]:
        kind, shape = self.now
        tree = after_delta_move(shape.topology, shape.settings["delta"], random)
        return kind, OverlayShape(tree, shape.settings)


async def _check_when_quiet(
    result: Storm,
    network: MemoryNetwork,
    clients: list[StormClient],
    changes: _OverlayStormChanges,
) -> None:
    """Wait until all is acknowledged and every table is right; record what is wrong then."""
    kind, shape = changes.now
    sessions = [client.client.session for client in clients]

    def errors() -> list[str]:
        tables, held, lane = network.tables(), holdings_of(sessions), network.lane
        busy = unfinished(network, sessions)
        if kind == "clusters":
            wrong = busy or cluster_holding_errors(structure_of(shape.settings), tables, held, lane)
        else:
            wrong = busy or holding_errors(shape.topology, tables, held, lane)
        return wrong or stale_ports(network, sessions)

    if await becomes_true(lambda: not errors()):
        await asyncio.sleep(1.0)  # What was acknowledged has been received, but perhaps not read.
    else:
        result.wrong += errors()
    check_deliveries(result, clients)
