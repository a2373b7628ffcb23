"""Changes of a network that can be rehearsed, and the network after them.  Pure.

    traffic=2            publishers publish twice as much
    without=B3           a broker less; its neighbours are linked with the one of them that has the
                         most links, its clients go where the fewest are
    overlay=mesh         or tree, or clusters:3
    tree=FILE            the links of a network file, as `godwit network apply` does
    plan=FILE            a plan of `godwit croc plan --output`: tree, clients, brokers
    placement=grape-load publishers move; static, pop, grape-load or grape-delay
    balancing=on         subscribers move; or off

Several, separated by commas, are one change: `without=B3,traffic=2`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from godwit.api.plan_requests import PlanToApply
from godwit.errors import UsageError
from godwit.overlay import OVERLAYS
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings, structure_of
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.overlay.topology import Topology, topology
from godwit.policies import offload, placement, soft_links
from godwit.policies.offload.peer import check_peer
from godwit.policies.offload.settings import BalancingSettings
from godwit.policies.placement.settings import PlacementSettings
from godwit.rehearsal.network_snapshot import NetworkSnapshot, SnapshotClient
from godwit.simulation.simulator import Modules

Links: TypeAlias = list[tuple[str, str]]

CLUSTERS, MESH, TREE = "clusters", "mesh", "tree"
KINDS = ("traffic", "without", "overlay", "tree", "plan", "placement", "balancing")


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsedChange:
    """None: as it is."""

    text: str
    traffic: float = 1.0
    without: tuple[str, ...] = ()
    overlay: str | None = None
    clusters: int | None = None
    links: Links | None = None
    plan: PlanToApply | None = None
    placement: str | None = None
    balancing: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedNetwork:
    """The network after a change, before its policies have moved anyone."""

    topology: Topology
    clients: tuple[SnapshotClient, ...]
    overlay: str
    overlay_settings: Mapping[str, object]
    policy: Modules | None = None
    """Moves clients, until it has settled."""
    soft_links: Modules | None = None
    traffic: float = 1.0
    moves: int = 0
    """Clients that are elsewhere."""
    new_links: int = 0
    notes: list[str] = field(default_factory=list)


# -- reading -----------------------------------------------------------------------------------


def read_change(
    text: str,
    *,
    read_plan: Callable[[str], PlanToApply],
    read_links: Callable[[str], Links],
) -> RehearsedChange:
    """A change as on the command line; the two functions read files."""
    found: dict[str, object] = {"text": text}
    without: list[str] = []
    for part in text.split(","):
        kind, equals, value = part.strip().partition("=")
        if not equals or not value or kind not in KINDS:
            raise UsageError(
                f"change {part.strip()!r}: write KIND=VALUE, with KIND one of {', '.join(KINDS)}"
            )
        match kind:
            case "traffic":
                found["traffic"] = _factor(value)
            case "without":
                without.append(value)
            case "overlay":
                found |= _overlay(value)
            case "tree":
                found["links"] = read_links(value)
            case "plan":
                found["plan"] = read_plan(value)
            case "placement":
                placement.named(value)
                found["placement"] = value
            case _:
                if value not in ("on", "off"):
                    raise UsageError(f"change balancing={value}: it is on or off")
                found["balancing"] = value == "on"
    return RehearsedChange(without=tuple(without), **found)  # type: ignore[arg-type]


def _factor(value: str) -> float:
    try:
        factor = float(value.removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not 0.0 < factor <= 1_000.0:
        raise UsageError(f"change traffic={value}: it is a number above 0 and up to 1000")
    return factor


def _overlay(value: str) -> dict[str, object]:
    name, colon, number = value.partition(":")
    if name not in OVERLAYS:
        raise UsageError(f"change overlay={value}: choose from {', '.join(OVERLAYS)}")
    if (name == CLUSTERS) != bool(colon) or (colon and not number.isdecimal()):
        raise UsageError(f"change overlay={value}: write overlay=clusters:3, or overlay=mesh")
    return {"overlay": name, "clusters": int(number) if number else None}


# -- applying ----------------------------------------------------------------------------------


def unchanged(snapshot: NetworkSnapshot) -> ChangedNetwork:
    """As it is, and no policy moves anyone: that is what was measured."""
    return ChangedNetwork(
        topology=_linked(snapshot.overlay, snapshot.overlay_settings, snapshot.topology),
        clients=snapshot.clients,
        overlay=snapshot.overlay,
        overlay_settings=snapshot.overlay_settings,
        soft_links=_soft_links(snapshot.overlay, snapshot.overlay_settings),
    )


def changed(snapshot: NetworkSnapshot, change: RehearsedChange) -> ChangedNetwork:
    brokers = snapshot.broker_names
    homes = {client.name: client.broker for client in snapshot.clients}
    before = _tree_of(snapshot)
    links, notes = before, list[str]()
    if change.links is not None:
        links = topology(brokers, change.links)
    if change.plan is not None:
        links, homes = _planned(change.plan, links, homes)
    for broker in change.without:
        links, homes = _without(broker, links, homes)
    overlay, settings = _overlay_of(snapshot, change, list(links.brokers))
    if overlay != CLUSTERS and not links.is_tree:
        raise UsageError(
            f"change {change.text}: the links {_said(links)} are not one tree of all brokers"
        )
    linked = _linked(overlay, settings, links)
    moving, balancing = _policies(snapshot, change, overlay)
    if balancing is not None:
        check_peer(linked)
        homes = _with_publishers_at_heads(snapshot, linked, homes, notes)
    is_new = linked.links - snapshot.topology.links
    clients = tuple(
        msgspec.structs.replace(client, broker=homes[client.name]) for client in snapshot.clients
    )
    return ChangedNetwork(
        topology=linked,
        clients=clients,
        overlay=overlay,
        overlay_settings=settings,
        policy=_modules(moving, balancing),
        soft_links=_soft_links(overlay, settings),
        traffic=change.traffic,
        moves=sum(homes[client.name] != client.broker for client in snapshot.clients),
        new_links=len(is_new),
        notes=notes,
    )


def _said(links: Topology) -> str:
    return ", ".join(f"{a}-{b}" for a, b in sorted(links.links))


def _tree_of(snapshot: NetworkSnapshot) -> Topology:
    if snapshot.overlay == CLUSTERS:
        return structure_of(snapshot.overlay_settings).backbone
    return snapshot.topology


def _linked(overlay: str, settings: Mapping[str, object], links: Topology) -> Topology:
    return structure_of(settings).topology if overlay == CLUSTERS else links


def _overlay_of(
    snapshot: NetworkSnapshot, change: RehearsedChange, brokers: list[str]
) -> tuple[str, Mapping[str, object]]:
    name = change.overlay or snapshot.overlay
    if name == CLUSTERS:
        clusters = change.clusters or structure_count(snapshot.overlay_settings)
        arrange(brokers, clusters)
        return name, cluster_settings(brokers, clusters)
    if name == MESH:
        kept = snapshot.overlay_settings if snapshot.overlay == MESH else {}
        return name, kept or dict(msgspec.to_builtins(MeshSettings()))
    return name, {}


def structure_count(settings: Mapping[str, object]) -> int:
    return len(structure_of(settings).clusters)


def _planned(
    plan: PlanToApply, links: Topology, homes: dict[str, str]
) -> tuple[Topology, dict[str, str]]:
    """The plan's tree; brokers that it does not need are gone, and their clients at the root."""
    used = plan.used
    if unknown := sorted(set(used) - set(links.brokers)):
        raise UsageError(
            f"the plan needs {', '.join(unknown)}, which the snapshot does not have: start them"
        )
    after = {name: plan.clients.get(name, broker) for name, broker in homes.items()}
    kept = {name: broker if broker in used else plan.root for name, broker in after.items()}
    return topology(sorted(used), plan.links), kept


def _without(
    broker: str, links: Topology, homes: dict[str, str]
) -> tuple[Topology, dict[str, str]]:
    if broker not in links.brokers:
        raise UsageError(
            f"change without={broker}: there is no such broker; there are"
            f" {', '.join(links.brokers)}"
        )
    left = [name for name in links.brokers if name != broker]
    if not left:
        raise UsageError(f"change without={broker}: it is the only broker")
    around = links.neighbours(broker)
    kept = {link for link in links.links if broker not in link}
    if around:
        hub = max(around, key=lambda name: (len(links.neighbours(name)), name))
        kept |= {(hub, other) for other in around if other != hub}
    clients = Counter(dict.fromkeys(left, 0))
    clients.update(home for home in homes.values() if home != broker)
    after = {}
    for name, home in homes.items():
        after[name] = home
        if home == broker:
            after[name] = min(left, key=lambda each: (clients[each], each))
            clients[after[name]] += 1
    return topology(left, kept), after


# -- policies ----------------------------------------------------------------------------------


def _policies(
    snapshot: NetworkSnapshot, change: RehearsedChange, overlay: str
) -> tuple[PlacementSettings | None, BalancingSettings | None]:
    """At most one of the two, as in a network file."""
    moving = snapshot.placement
    if change.placement is not None:
        moving = placement.named(change.placement)
    balancing = snapshot.balancing
    if change.balancing is not None:
        balancing = (balancing or BalancingSettings()) if change.balancing else None
    if moving is not None and balancing is not None:
        if change.placement is None:
            moving = None
        elif change.balancing is None:
            balancing = None
        else:
            raise UsageError(f"change {change.text}: placement and balancing exclude each other")
    if overlay == CLUSTERS and (moving is not None or balancing is not None):
        raise UsageError(f"change {change.text}: placement and balancing need a tree")
    return moving, balancing


def _with_publishers_at_heads(
    snapshot: NetworkSnapshot, links: Topology, homes: dict[str, str], notes: list[str]
) -> dict[str, str]:
    """Edge brokers refuse publishers when load is balanced: these go to the head before."""
    after = dict(homes)
    for client in snapshot.clients:
        around = links.neighbours(homes[client.name])
        if client.advertisements and len(around) == 1:
            after[client.name] = around[0]
    moved = sum(after[name] != home for name, home in homes.items())
    if moved:
        notes.append(f"{moved} publishers have to move from edge brokers to cluster-heads before")
    return after


def _modules(
    moving: PlacementSettings | None, balancing: BalancingSettings | None
) -> Modules | None:
    if balancing is not None:
        return offload.modules(balancing, seed=1)
    return None if moving is None else placement.modules(moving, seed=1)


def _soft_links(overlay: str, settings: Mapping[str, object]) -> Modules | None:
    if overlay != MESH:
        return None
    return soft_links.modules(msgspec.convert(dict(settings), MeshSettings))
