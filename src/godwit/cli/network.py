"""Commands for a network of brokers on this machine: run it, and print a file for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop

from godwit.api.dashboard_api import OFF
from godwit.cli.broker import Trace, traced
from godwit.cli.dashboard_serving import DashboardAt, OpenPage, dashboard_at, shown
from godwit.cli.extras import needs
from godwit.cli.options import LogLevel
from godwit.cli.signals import stop_event, unless_stopped
from godwit.config import changed
from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_structure import AUTO, ClusterNumber
from godwit.overlay.mesh.master_overlay_map import DELTA_MAX
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.overlay.mesh.strategies import ForwardingStrategy
from godwit.overlay.topology import Topology, balanced_tree, chain, peer, star
from godwit.policies.offload.settings import BalancingSettings
from godwit.runtime.deployment import COORDINATOR, DATACLUSTER, LocalDeployment
from godwit.runtime.logs import configure
from godwit.runtime.restarting import RestartLimit
from godwit.runtime.settings import (
    CLUSTERS,
    MESH,
    NetworkSettings,
    Table,
    dump_network,
    load_network,
    network_of,
)
from godwit.web.directory import Directory

MESH_DEFAULTS = MeshSettings()
#: For brokers of a network with a dashboard whose file gives them no HTTP address.
ANY_PORT = "127.0.0.1:0"
#: The shape for load balancing: clusters of a head and edge brokers.
PEER = "peer"
CLUSTERS_MAX = 1_000


def up(
    file: Annotated[Path, typer.Argument(help="Network file, as `godwit topology` prints it.")],
    trace: Trace = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Start a process again that ends by itself.")
    ] = False,
    restart_limit: Annotated[
        int, typer.Option(min=1, help="Restarts of one process, at most; then all are stopped ...")
    ] = RestartLimit().restarts,
    restart_within_s: Annotated[
        float, typer.Option(min=1, help="... unless they are further apart, in seconds.")
    ] = RestartLimit().within_s,
    dashboard: DashboardAt = None,
    open_page: OpenPage = False,
    log_level: LogLevel = "warning",
) -> None:
    r"""Run a network of broker processes on this machine, until Ctrl-C.

    Also runs the data cluster and the coordinator, if the file has \[services.datacluster] or
    \[services.coordinator], and serves the dashboard.
    """
    network = load_network(file)
    try:
        network.check_whole()
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    for service, table in network.services.tables.items():
        _check_table(file, service, table)
    configure(log_level, "text")
    network = with_dashboard(network, dashboard)
    limit = RestartLimit(restart_limit, restart_within_s) if restart else None
    uvloop.run(_up(traced(network, trace), limit, log_level, open_page=open_page))


def with_dashboard(network: NetworkSettings, listen: str | None) -> NetworkSettings:
    """`network` with this address of the dashboard, and HTTP at every broker, which it needs."""
    network = changed(network, dashboard=listen)
    if network.dashboard == OFF:
        return network
    brokers = [each if each.http else changed(each, http=ANY_PORT) for each in network.broker]
    return changed(network, broker=brokers)


def _directory(running: LocalDeployment) -> Directory:
    def brokers() -> dict[str, str]:
        return {
            name: running.brokers.http(name)
            for name in (each.id for each in running.brokers.network.broker)
        }

    return Directory(
        brokers=brokers,
        coordinator=lambda: _url(running, COORDINATOR),
        datacluster=lambda: _url(running, DATACLUSTER),
        secret=running.brokers.network.secret,
    )


def _url(running: LocalDeployment, service: str) -> str | None:
    """Of a service that runs here, or elsewhere."""
    if service in running.services:
        return running.services[service].url
    return running.brokers.network.service_url(service)


def _check_table(file: Path, service: str, table: Table) -> None:
    """Raise UsageError for a table that the service would refuse, before anything starts."""
    try:
        msgspec.convert(table, _settings_of(service))
    except (msgspec.ValidationError, UsageError) as error:
        raise UsageError(f"{file}: [services.{service}]: {error}") from None


def _settings_of(service: str) -> type[msgspec.Struct]:
    if service == DATACLUSTER:
        with needs("datacluster", f"[services.{service}]"):
            from godwit.datacluster.settings import DataClusterSettings  # noqa: PLC0415
        return DataClusterSettings
    from godwit.coordinator.settings import CoordinatorSettings  # noqa: PLC0415

    return CoordinatorSettings


async def _up(
    network: NetworkSettings, limit: RestartLimit | None, log_level: str, *, open_page: bool
) -> None:
    stopped = stop_event()
    starting = LocalDeployment(network, log_level=log_level, supervised=limit is not None)
    everything = [f"{len(network.broker)} brokers", *starting.services]
    typer.echo(f"starting {', '.join(everything)} ...")
    running = await unless_stopped(stopped, starting.__aenter__())
    if running is None:
        return
    try:
        for each in running.brokers.network.broker:
            http = "" if each.http is None else f"   {running.brokers.http(each.id)}/metrics"
            typer.echo(f"  {each.id}   godwit://{each.listen}{http}")
        for name, service in running.services.items():
            typer.echo(f"  {name}   {service.url}")
        async with dashboard_at(network.dashboard, _directory(running)) as url:
            if url is not None:
                typer.echo(f"  dashboard   {url}")
                if open_page:
                    shown(url)
            typer.echo("all are linked; Ctrl-C stops them")
            watching = running.first_end() if limit is None else running.supervise(limit)
            ended = await unless_stopped(stopped, watching)
        if ended is not None:
            raise UsageError(ended)
        typer.echo("stopping ...")
    finally:
        codes = await running.stop()
    if any(codes.values()):
        raise UsageError(f"some processes did not stop cleanly; exit codes: {codes}")


def topology(
    shape: Annotated[
        str, typer.Argument(help="Shape of the network: tree, mesh, chain, star, peer or clusters.")
    ] = "tree",
    brokers: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of brokers; not of `peer`.")
    ] = 7,
    fanout: Annotated[int, typer.Option(min=1, help="Brokers below each broker of a tree.")] = 2,
    clusters: Annotated[
        str,
        typer.Option(
            help="Number of clusters of `peer` and `clusters`, or `auto`: a coordinator finds out."
        ),
    ] = "4",
    edges: Annotated[
        int, typer.Option(min=0, max=1_000, help="Edge brokers at each head of `peer`.")
    ] = 2,
    delta: Annotated[
        int, typer.Option(min=1, max=DELTA_MAX, help="How far brokers of a mesh know the tree.")
    ] = MESH_DEFAULTS.delta,
    strategy: Annotated[
        ForwardingStrategy, typer.Option(help="How brokers of a mesh choose links.")
    ] = MESH_DEFAULTS.strategy,
    links: Annotated[
        int, typer.Option(min=0, help="Primary and soft links of a broker of a mesh, at most.")
    ] = MESH_DEFAULTS.fanout,
    balancing: Annotated[
        bool, typer.Option("--balancing", help="Let brokers balance their load.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=1, max=65_000, help="Port of the first broker; the others follow.")
    ] = 7400,
    http_port: Annotated[
        int | None,
        typer.Option(min=1, max=65_000, help="HTTP port of the first broker; none by default."),
    ] = None,
    host: Annotated[str, typer.Option(help="Host that all brokers listen on.")] = "127.0.0.1",
) -> None:
    """Print a network file for `godwit up`: brokers, ports and links."""
    if shape == PEER:
        shown = peer(clusters=_number(clusters), edges=edges)
    else:
        shown = _shape(shape, brokers, fanout)
    number: ClusterNumber = AUTO if clusters == AUTO else _number(clusters)
    network = network_of(
        shown,
        clusters=number if shape == CLUSTERS else None,
        mesh=MeshSettings(delta=delta, strategy=strategy, fanout=links) if shape == MESH else None,
        host=host,
        port=port,
        http_port=http_port,
    )
    if balancing:
        network = changed(network, balancing=BalancingSettings())
    network.check_whole()
    typer.echo(dump_network(network), nl=False)


def _number(clusters: str) -> int:
    if not clusters.isdecimal() or not 1 <= int(clusters) <= CLUSTERS_MAX:
        raise UsageError(f"--clusters {clusters}: a number from 1 to {CLUSTERS_MAX}, or `{AUTO}`")
    return int(clusters)


def _shape(shape: str, brokers: int, fanout: int) -> Topology:
    match shape:
        case "tree" | "mesh":
            return balanced_tree(brokers, fanout=fanout)
        case "chain" | "clusters":
            return chain(brokers)
        case "star":
            return star(brokers - 1)
        case _:
            raise UsageError(
                f"unknown shape {shape!r}; choose from tree, mesh, chain, star, {PEER}, clusters"
            )
