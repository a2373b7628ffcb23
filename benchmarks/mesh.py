"""The router of a mesh: what a change of links costs, and a forwarding decision beside the tree's.

Broker B002 of a balanced tree of 120 brokers with three links each (Publiy's C1), delta 4, 6,500
subscriptions of DT1 (without covering), soft links with every broker within delta.

change of links   production: the working overlay map, and the substitute of every anchor; the
                  index of subscriptions stays as it is.  Plain: the paper's, the map by edge
                  contraction and a new WST, whose entries have the substitute of their anchor.
                  The paper reports 0.8 ms and 17 ms (section 7).
forwarding        from a publication to its hops, as drivers ask for it (`has_to_wait`, then
                  `destinations`), in microseconds; the reference is the router of a tree with the
                  same subscriptions.  Both take turns, the shortest of several slices counts.
                  "busy": one publisher has published them all, and nothing is acknowledged, so
                  each decision has to keep the order.

CPU time, because machines are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from time import process_time

from benchmarks.report import Row
from godwit.broker.routing import Place
from godwit.broker.stimuli import LinkKind, LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.mesh_messages import Neighbourhood, SoftLinkUse, SoftUse
from godwit.content.messages import AdvertisementId, Publication, Subscription, SubscriptionId
from godwit.content.values import Record
from godwit.overlay.mesh.forwarding import Forwarding
from godwit.overlay.mesh.master_overlay_map import MasterOverlayMap
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.topology import Topology, balanced_tree
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.workloads.workload import Workload
from godwit.workloads.zipf import DT1, zipf_workload

BROKERS, AT, DELTA = 120, "B002", 4
PAPER_WOM_MS, PAPER_WST_MS = 0.8, 17.0
#: A forwarding decision on the mesh over one on the tree, at most.
DECISION_BAR = 1.3
REPEATS = 21
SLICE = 500
LOCAL = LocalClient("publisher")


def rows(*, quick: bool) -> Iterator[list[Row]]:
    tree = balanced_tree(BROKERS, fanout=2)
    workload = zipf_workload(DT1, tree.brokers, Random(1))
    yield _changes(tree, workload)
    yield _decisions(tree, workload, slices=5 if quick else 25)


# -- a change of links -------------------------------------------------------------------------


def _changes(tree: Topology, workload: Workload) -> list[Row]:
    router = mesh_router(tree, workload, "S2")
    linked = {link.name for link in router.neighbours}
    anchors = [_anchor(tree, each.at) for each in workload.subscribers]
    filters = [each.filter for each in workload.subscribers]

    def production() -> None:
        forwarding = Forwarding(router.mom, linked, 0)
        everyone = forwarding.anchors(Neighbour(name) for name in router.mom.distances)
        forwarding.decide(everyone, router.settings.strategy)

    def plain() -> None:
        plain_wst(router.mom, linked, filters, anchors)

    maps = _maps(tree)
    neighbour = tree.neighbours(AT)[0]
    told = maps[neighbour].view_for(AT)

    def learn() -> None:
        maps[AT].forget(neighbour)
        maps[AT].hear(neighbour, told)

    ours_ms, map_ms = _shortest_ms(production), _shortest_ms(learn) / 2
    size = len(filters)
    return [
        Row("map of links (WOM), ms", "mesh, paper", size, PAPER_WOM_MS, ours_ms, ours_ms,
            PAPER_WOM_MS, is_at_most=True),
        Row("WOM and anchors after a change, ms", "mesh, plain", size, _shortest_ms(plain), ours_ms,
            ours_ms, PAPER_WST_MS, is_at_most=True),
        Row("the tree within delta (MOM), ms", "mesh", size, None, map_ms, map_ms),
    ]  # fmt: skip


def plain_wst(
    mom: MasterOverlayMap, linked: set[str], filters: Sequence[Filter], anchors: Sequence[str]
) -> dict[str, list[Filter]]:
    """The paper's: merge brokers without links, the farthest first; then enter each filter."""
    merged = {broker: broker for broker in mom.distances}
    for broker in reversed(list(mom.distances)):
        if broker != mom.broker and broker not in linked:
            for each, into in merged.items():
                if into == broker:
                    merged[each] = mom.parents[broker]
    table: dict[str, list[Filter]] = {}
    for filter, anchor in zip(filters, anchors, strict=True):
        table.setdefault(merged[anchor], []).append(filter)
    return table


def _shortest_ms(do: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        start = process_time()
        do()
        taken.append((process_time() - start) * 1000)
    return min(taken)


# -- forwarding --------------------------------------------------------------------------------


def _decisions(tree: Topology, workload: Workload, *, slices: int) -> list[Row]:
    routers: dict[str, TreeRouting] = {"tree": tree_router(tree, workload)}
    routers |= {each: mesh_router(tree, workload, each) for each in ("S0", "S1", "S2")}
    taken: dict[str, list[float]] = {name: [] for name in (*routers, "S2, busy")}
    records = list(workload.sample(SLICE))
    quiet = [_publication(f"p{number}", number, each) for number, each in enumerate(records)]
    busy = [_publication("p", number, each) for number, each in enumerate(records)]
    for _ in range(slices):
        for name, router in routers.items():
            taken[name].append(_slice_us(router, quiet))
        taken["S2, busy"].append(_slice_us(routers["S2"], busy))
    base = min(taken["tree"])
    return [
        Row(f"forwarding decision, us, {name}", "mesh", len(workload.subscribers), base,
            min(taken[name]), min(taken[name]) / base, DECISION_BAR, is_at_most=True)
        for name in taken
        if name != "tree"
    ]  # fmt: skip


def _publication(publisher: str, number: int, record: Record) -> Publication:
    return Publication(
        publisher=publisher,
        sequence=number,
        advertisement=AdvertisementId("p/1"),
        content=dict(record),
    )


def _slice_us(router: TreeRouting, stream: Sequence[Publication]) -> float:
    start = process_time()
    if isinstance(router, MeshRouting):
        for publication in stream:
            router.has_to_wait(publication, LOCAL, 0.0)
            router.destinations(publication, LOCAL, 0, 0.0)
    else:
        for publication in stream:
            router.destinations(publication, LOCAL, 0, 0.0)
    taken_us = (process_time() - start) / len(stream) * 1e6
    if isinstance(router, MeshRouting):
        for neighbour, position in router.copies.positions().items():
            router.acknowledged(neighbour, position)
    return taken_us


# -- routers -----------------------------------------------------------------------------------


def tree_router(tree: Topology, workload: Workload) -> TreeRouting:
    router = TreeRouting(Place.of(AT, tree.neighbours(AT)))
    _subscribe(router, tree, workload)
    return router


def mesh_router(tree: Topology, workload: Workload, strategy: str) -> MeshRouting:
    """As in a network whose brokers have told each other their maps and opened all soft links."""
    settings = {"delta": DELTA, "strategy": strategy}
    router = MeshRouting(Place.of(AT, tree.neighbours(AT), settings=settings))
    router.start("")
    maps = _maps(tree)
    for neighbour in tree.neighbours(AT):
        told = Neighbourhood(brokers=maps[neighbour].view_for(AT))
        router.receive(told, Neighbour(neighbour))
    soft = [each for each, links in router.mom.distances.items() if links > 1]
    router.want_soft_links(soft)
    for broker in soft:
        router.link_up(Neighbour(broker), LinkKind.SOFT)
        router.receive(SoftLinkUse(use=SoftUse.GRANTED), Neighbour(broker))
    _subscribe(router, tree, workload)
    return router


def _maps(tree: Topology) -> dict[str, MasterOverlayMap]:
    """Each broker tells its neighbours until no map changes."""
    maps = {broker: MasterOverlayMap(broker, DELTA) for broker in tree.brokers}
    for broker, mom in maps.items():
        for neighbour in tree.neighbours(broker):
            mom.add(neighbour)
    for _ in range(DELTA):
        for broker, mom in maps.items():
            for neighbour in tree.neighbours(broker):
                maps[neighbour].hear(broker, mom.view_for(neighbour))
    return maps


def _anchor(tree: Topology, at: str) -> str:
    """The broker up to delta links in the direction of the subscriber."""
    return tree.path(AT, at)[: DELTA + 1][-1]


def _subscribe(router: TreeRouting, tree: Topology, workload: Workload) -> None:
    for number, each in enumerate(workload.subscribers):
        path = tree.path(AT, each.at)
        hop = Neighbour(path[1]) if len(path) > 1 else LocalClient(each.name)
        anchor = path[: DELTA + 1][-1] if len(path) > 1 else ""
        id = SubscriptionId(f"{each.name}/{number}")
        router.handle(Subscription(id=id, filter=each.filter, anchor=anchor), hop)
