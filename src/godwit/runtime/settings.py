"""Settings of one broker and of a whole network.  docs/operating.md explains each key.

A network file is TOML.  `godwit up FILE` runs all of it on this machine, `godwit broker --config
FILE --id B1` one broker of it, so the same file serves a laptop and a rack:

    overlay = "tree"         # or "mesh"; or "clusters", with `clusters = 3` and without `links`

    [limits]                 # for every broker; all keys are optional
    session_s = 60

    [[broker]]
    id = "B1"
    listen = "127.0.0.1:7401"
    http = "127.0.0.1:8401"

    [[broker]]
    id = "B2"
    listen = "127.0.0.1:7402"
    links = ["B1"]           # each link once, at either end: an id of this file, or godwit://HOST:PORT

    [trace]                  # off without it
    folder = "trace"

    [placement]              # off without it: publishers stay where they are
    policy = "grape"

    [balancing]              # off without it: subscribers stay where they are; not with [placement]

    [profiling]              # off without it: brokers record what they deliver, for CROC

    [services.datacluster]   # `godwit up` runs a data cluster, too, and all brokers use it
    folder = "data"

    [services.coordinator]   # ... and a coordinator

and at the top, if they run elsewhere: `datacluster` and `coordinator`, each http://HOST:PORT.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from godwit.api import coordinator_api, dashboard_api, datacluster_api
from godwit.broker.meters import WINDOW_S
from godwit.config import checked, read
from godwit.content.geography import GeoPoint
from godwit.distribution import install_hint
from godwit.errors import UsageError
from godwit.overlay import overlay as overlay_named
from godwit.overlay.clusters.cluster_structure import (
    AUTO,
    ClusterNumber,
    cluster_settings,
    dialled_links,
    first_number,
)
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.overlay.topology import Topology, cycle_of, topology
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.policies.offload.peer import check_peer
from godwit.policies.offload.settings import BalancingSettings
from godwit.policies.placement.settings import PlacementSettings, policy_of
from godwit.protocol.addresses import address, url_address
from godwit.protocol.frames import Name, Text
from godwit.runtime.toml_writer import toml_text

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Bytes = Annotated[int, msgspec.Meta(ge=1024)]
Count = Annotated[int, msgspec.Meta(ge=1)]

#: Addresses to listen on that cannot be called.
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Timeouts and queue limits."""

    heartbeat_s: Seconds = 2.0
    """A peer sends something at least this often; after three silent intervals it is lost."""

    session_s: Seconds = 60.0
    """A client that lost its connection may come back for its session within this time."""

    durable_s: Seconds = 3_600.0
    """A durable client, as the data cluster's feeds are, may come back within this time; until then
    those who publish for it wait."""

    link_s: Seconds = 10.0
    """A neighbour that lost its connection may come back within this time, and nothing is lost."""

    restart_s: Seconds = 2.0
    """A broker that comes back after a failure waits so long for its clients before it passes
    anything on."""

    claim_s: Seconds = 1.0
    """A client that has chosen its name waits so long for parts of the network that do not answer
    whether it is free."""

    patience_s: Seconds = 1.0
    """A subscriber that acknowledges nothing may hold its publishers back for so long; then it is
    isolated."""

    client_queue_bytes: Bytes = 16 * 1024 * 1024
    """What waits for a client that is away or isolated at most; publications beyond that are
    dropped and counted."""

    link_queue_bytes: Bytes = 64 * 1024 * 1024
    """What waits for a neighbour that is away at most; beyond that the link is given up."""

    window_bytes: Bytes = 4 * 1024 * 1024
    """What is sent to a peer ahead of its acknowledgements at most."""

    connections_max: Count = 10_000
    """Connections at a time; more are turned away."""

    drain_s: Seconds = 5.0
    """The time that a broker that stops gives to queued messages."""

    move_timeout_s: Seconds = 5.0
    """A client that is asked to move stays if it has not arrived by then; of several, each may
    take so long as all of them together, one after the other (the thesis's N x 5 s)."""

    load_window_s: Annotated[float, msgspec.Meta(ge=0.1, le=86_400)] = WINDOW_S
    """The load of a broker is that of the last complete window of this length."""


class TraceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What brokers record, and where."""

    folder: str | None = None
    """Where, for all brokers of the network; relative to where they are started.  None is off."""

    sample_every: Count = 1
    """Of so many publications of a publisher one is recorded, at every broker it passes."""

    gauges_every_s: Seconds = 10.0
    """How often the load of each broker is recorded."""

    rotate_rows: Count = 2_000_000
    """A file is closed, and can be read, when it has so many rows ..."""

    rotate_s: Seconds = 60.0
    """... or after this time."""

    def check(self) -> None:
        """Traces need a package that is optional."""
        if self.folder is not None and find_spec("pyarrow") is None:
            raise UsageError(f"a trace needs the package pyarrow: {install_hint('lab')}")


class BrokerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    id: Name
    listen: str = "127.0.0.1:0"
    """Host and port for clients and neighbours; port 0 is any free one."""

    address: str | None = None
    """Host and port at which clients reach this broker, if that is not where it listens: for those
    that are sent here by others."""

    http: str | None = None
    """Host and port of /metrics, /healthz, /routing and /move, and of channels over HTTP; none
    unless it is set."""

    links: list[str] = []
    """Neighbours this broker dials: godwit://HOST:PORT, or ids of the same file."""

    location: GeoPoint | None = None
    """Latitude and longitude, for a coordinator that sends clients to the nearest broker."""

    output_bandwidth_bytes_s: Annotated[float, msgspec.Meta(gt=0)] = 125_000_000.0
    """What the broker's network takes; its output utilisation is measured against it."""

    limit_output: bool = False
    """Whether the broker itself sends no more than `output_bandwidth_bytes_s`."""

    memory_bytes: Bytes | None = None
    """What the process should use at most; its memory utilisation is measured against it.  It is
    not limited."""


#: The overlay whose links follow from the number of clusters, and the one with soft links.
CLUSTERS, MESH = "clusters", "mesh"

_Key = Annotated[str, msgspec.Meta(pattern=r"^\w+\Z")]
_Plain = str | int | float | bool
#: The settings of a service, which checks them itself, with tables in them.
Table = dict[_Key, _Plain | dict[_Key, _Plain]]

#: Default addresses of services.
LISTENS = {"datacluster": datacluster_api.LISTEN, "coordinator": coordinator_api.LISTEN}


class ServiceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `godwit up` runs beside the brokers."""

    datacluster: Table | None = None
    """As in a file for `godwit datacluster --config`; what is missing is taken from this one."""

    coordinator: Table | None = None
    """As in a file for `godwit coordinator --config`."""

    @property
    def tables(self) -> dict[str, Table]:
        """Tables of the configured services, by name."""
        all_of_them = {"datacluster": self.datacluster, "coordinator": self.coordinator}
        return {name: table for name, table in all_of_them.items() if table is not None}

    def listen(self, service: str) -> str:
        """HOST:PORT."""
        return str(self.tables[service].get("listen", LISTENS[service]))


class NetworkSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    broker: Annotated[list[BrokerSettings], msgspec.Meta(min_length=1)]
    overlay: str = "tree"
    clusters: Annotated[int, msgspec.Meta(ge=1)] | Literal["auto"] | None = None
    """How many clusters there are, if that is the overlay: brokers of the file in their order.
    With "auto" the coordinator finds out (coordinator/cluster_tuning.py)."""

    mesh: MeshSettings | None = None
    """How soft links are used, if that is the overlay (overlay/mesh/mesh_settings.py)."""

    secret: Text = ""
    """Brokers link only with brokers that have the same one."""

    datacluster: str | None = None
    """http://HOST:PORT, where brokers find channels; where the service of this file listens, if
    there is one, and none else.  With standbys, their URLs follow, separated by commas."""

    coordinator: str | None = None
    """http://HOST:PORT, to whom brokers report their load; as with `datacluster`."""

    dashboard: str = dashboard_api.LISTEN
    """HOST:PORT of the dashboard that `godwit up` serves, or "off"."""

    services: ServiceSettings = ServiceSettings()
    limits: Limits = Limits()
    trace: TraceSettings = TraceSettings()
    placement: PlacementSettings | None = None
    """Which policy moves publishers, and how it is set (policies/placement/settings.py)."""

    balancing: BalancingSettings | None = None
    """How edge brokers give subscribers to each other (policies/offload/settings.py)."""

    profiling: ProfilingSettings | None = None
    """How brokers record what they deliver (policies/allocation/cbc_settings.py)."""

    def __post_init__(self) -> None:
        overlay_named(self.overlay)
        for service in self.services.tables:
            _check_address(f"[services.{service}]: listen", self.services.listen(service))
        if self.dashboard != dashboard_api.OFF:
            _check_address("dashboard", self.dashboard)
        if self.datacluster is not None or self.coordinator is not None:
            from godwit.http.http_client import server_url, server_urls  # noqa: PLC0415  Slow.

            server_urls(self.datacluster or "http://none")
            server_url(self.coordinator or "http://none")
        ids = self._ids
        if len(set(ids)) != len(ids):
            twice = next(id for id in ids if ids.count(id) > 1)
            raise UsageError(f"two brokers have the id {twice!r}; give each an id of its own")
        self._link_clusters()
        if self.mesh is not None and self.overlay != MESH:
            raise UsageError(f'[mesh] needs `overlay = "{MESH}"`')
        for broker in self.broker:
            where = f"broker {broker.id!r}"
            host, _ = _check_address(f"{where}: listen", broker.listen)
            if broker.address is not None:
                _check_address(f"{where}: address", broker.address)
            elif host in EVERYWHERE and self._moves_clients is not None:
                raise UsageError(
                    f"broker {broker.id!r} listens on {broker.listen}, and {self._moves_clients}"
                    " that are sent there need its `address`"
                )
            if broker.http is not None:
                _check_address(f"{where}: http", broker.http)
            for link in broker.links:
                self._check_link(f"{where}: links", link)
        if self.overlay != CLUSTERS and (cycle := self._cycle):
            raise UsageError(
                f"the links form a cycle, and should be a tree: {' - '.join(cycle)};"
                " remove one of these links, and name each link at one end only"
            )
        if self.balancing is not None:
            self._check_balancing()

    @property
    def _ids(self) -> list[str]:
        return [broker.id for broker in self.broker]

    @property
    def overlay_settings(self) -> dict[str, Any]:
        """From which a broker finds its place in the overlay."""
        if self.overlay == MESH:
            return dict(msgspec.to_builtins(self.mesh or MeshSettings()))
        return {} if self.clusters is None else cluster_settings(self._ids, self._first_number)

    @property
    def _first_number(self) -> int:
        assert self.clusters is not None
        return first_number(self.clusters, len(self.broker))

    @property
    def finds_clusters(self) -> bool:
        """Whether the coordinator finds out how many clusters are best."""
        return self.clusters == AUTO

    def _link_clusters(self) -> None:
        """In clusters the links follow from the brokers and the number of clusters."""
        if (self.overlay == CLUSTERS) != (self.clusters is not None):
            both = f'`overlay = "{CLUSTERS}"` and `clusters`, the number of them,'
            raise UsageError(f"{both} need each other")
        if self.clusters is None:
            return
        for table in ("placement", "balancing", "profiling"):
            if getattr(self, table) is not None:
                raise UsageError(f'[{table}] needs `overlay = "tree"`')
        dialled = dialled_links({each.id: each.links for each in self.broker}, self._first_number)
        linked = [msgspec.structs.replace(each, links=dialled[each.id]) for each in self.broker]
        msgspec.structs.force_setattr(self, "broker", linked)

    @property
    def _moves_clients(self) -> str | None:
        """Which clients are sent to other brokers, if any are."""
        if self.placement is not None:
            return "publishers"
        return None if self.balancing is None else "subscribers"

    def _check_balancing(self) -> None:
        if self.placement is not None:
            policy = policy_of(self.placement)
            raise UsageError(
                f"[placement] and [balancing] exclude each other: {policy} may send a publisher to"
                " an edge broker, which serves subscribers only; remove one of the two tables"
            )

    def check_whole(self) -> None:
        """Raise UsageError if the brokers here, without others, are not a network that works.

        The file of a broker that joins a network has a part of it only.
        """
        is_part = any("://" in link for broker in self.broker for link in broker.links)
        if self.balancing is None or is_part:
            return
        try:
            check_peer(self.topology)
        except UsageError as error:
            raise UsageError(f"[balancing]: {error}") from None

    def of(self, id: str) -> BrokerSettings:
        for broker in self.broker:
            if broker.id == id:
                return broker
        raise UsageError(f"there is no broker {id!r}; there are {', '.join(self.topology.brokers)}")

    def service_url(self, service: str) -> str | None:
        """URL of the data cluster or the coordinator; None without one."""
        told = {"datacluster": self.datacluster, "coordinator": self.coordinator}[service]
        if told is not None or service not in self.services.tables:
            return told
        listen = self.services.listen(service)
        host, port = address(listen)
        if port == 0 or host in EVERYWHERE:
            raise UsageError(
                f"[services.{service}] listens on {listen}, which cannot be dialled: set"
                f" `{service}` to where it is reached"
            )
        return f"http://{listen}"

    def link_address(self, link: str) -> tuple[str, int]:
        """Where to dial for a link: a godwit:// address, or the id of a broker of this file."""
        if "://" in link:
            return url_address(link)
        broker = self.of(link)
        host, port = address(broker.listen)
        if host in EVERYWHERE and broker.address is not None:  # Perhaps on another machine.
            return address(broker.address)
        return host, port

    def dialled_address(self, link: str) -> tuple[str, int]:
        """As `link_address`, for a caller: the port must be known."""
        host, port = self.link_address(link)
        if port == 0:
            raise UsageError(f"cannot call {link}: it listens on any free port; give it one")
        return host, port

    def neighbours(self, broker: BrokerSettings) -> list[str]:
        """The neighbours of a broker by name: those that it dials, and those that dial it."""
        dialling = [each.id for each in self.broker if broker.id in each.links]
        return sorted({*dialling, *(link for link in broker.links if "://" not in link)})

    @property
    def topology(self) -> Topology:
        """The brokers of this file and the links between them."""
        ids, known = self._ids, set(self._ids)
        links = [(b.id, to) for b in self.broker for to in b.links if to in known]
        return topology(ids, links)

    def _check_link(self, where: str, link: str) -> None:
        try:
            self.link_address(link)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None

    @property
    def _cycle(self) -> list[str]:
        """The brokers of a cycle, from one of them back to it; none if the links are a forest."""
        return cycle_of(self._ids, [(b.id, link) for b in self.broker for link in b.links])


def _check_address(where: str, text: str) -> tuple[str, int]:
    try:
        return address(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def load_network(path: Path) -> NetworkSettings:
    return read(path, NetworkSettings)


def dump_network(network: NetworkSettings) -> str:
    """As TOML, without most of what has its default."""
    texts = {key: getattr(network, key) for key in ("secret", "datacluster", "coordinator")}
    table: dict[str, object] = {
        "overlay": network.overlay,
        **({} if network.clusters is None else {"clusters": network.clusters}),
        **{key: text for key, text in texts.items() if text},
        **({} if network.dashboard == dashboard_api.LISTEN else {"dashboard": network.dashboard}),
    }
    sections = {
        "limits": _changes(network.limits, Limits()),
        "trace": _changes(network.trace, TraceSettings()),
        "services": network.services.tables,
        "mesh": {} if network.mesh is None else _changes(network.mesh, MeshSettings()),
    }
    table |= {name: section for name, section in sections.items() if section}
    if network.placement is not None:
        changed = _changes(network.placement, type(network.placement)())
        table["placement"] = {"policy": policy_of(network.placement), **changed}
    if network.balancing is not None:
        table["balancing"] = _changes(network.balancing, BalancingSettings())
    if network.profiling is not None:
        table["profiling"] = _changes(network.profiling, ProfilingSettings())
    table["broker"] = brokers = list[dict[str, object]]()
    for each in network.broker:
        links = [] if network.clusters is None else each.links  # They follow from it.
        plain = BrokerSettings(id=each.id, listen=each.listen, links=links)
        brokers.append({"id": each.id, "listen": each.listen, **_changes(each, plain)})
    return toml_text(table)


def network_of(
    topology: Topology,
    *,
    clusters: ClusterNumber | None = None,
    mesh: MeshSettings | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    http_port: int | None = None,
) -> NetworkSettings:
    """A network with these brokers and links, on ports from `port` on; 0 is any free one.

    With `clusters` the same brokers in so many clusters; with `mesh` soft links beside these links.
    """
    dialled: dict[str, list[str]] = {name: [] for name in topology.brokers}
    for a, b in sorted(topology.links) if clusters is None else ():
        dialled[b].append(a)
    brokers = [
        BrokerSettings(
            id=name,
            listen=f"{host}:{port and port + number}",
            http=None if http_port is None else f"{host}:{http_port and http_port + number}",
            links=dialled[name],
        )
        for number, name in enumerate(topology.brokers)
    ]
    kind = CLUSTERS if clusters is not None else "tree" if mesh is None else MESH
    return checked(NetworkSettings(broker=brokers, overlay=kind, clusters=clusters, mesh=mesh))


def _changes(settings: msgspec.Struct, defaults: msgspec.Struct) -> dict[str, object]:
    """Fields that do not have their default, as TOML has them."""
    given, usual = msgspec.to_builtins(settings), msgspec.to_builtins(defaults)
    return {key: value for key, value in given.items() if value != usual.get(key)}
