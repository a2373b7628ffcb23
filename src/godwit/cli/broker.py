"""The command that runs one broker."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import typer
import uvloop

from godwit.cli.options import Leash, LogForm, LogLevel, Secret
from godwit.cli.signals import stop_event, unless_stopped
from godwit.config import checked
from godwit.runtime.broker_orders import LEFT
from godwit.runtime.logs import configure
from godwit.runtime.processes import ANSWERS, LINKED, LISTENS
from godwit.runtime.server import BrokerServer
from godwit.runtime.settings import BrokerSettings, NetworkSettings, load_network

Id: TypeAlias = Annotated[
    str, typer.Option("--id", help="Name of the broker, unique in the network.")
]
Listen: TypeAlias = Annotated[
    str | None, typer.Option(help="Address for clients and neighbours, HOST:PORT.")
]
Link: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Neighbour to connect to, godwit://HOST:PORT; repeat for more."),
]
Http: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Address for /metrics, /healthz, /routing, /move and channels, HOST:PORT."),
]
NetworkFile: TypeAlias = Annotated[
    Path | None, typer.Option(help="Network file; run the broker with this --id in it.")
]
DataCluster: TypeAlias = Annotated[
    str | None, typer.Option(help="Data cluster that has the channels, http://HOST:PORT.")
]
Coordinator: TypeAlias = Annotated[
    str | None, typer.Option(help="Coordinator to report the load to, http://HOST:PORT.")
]
Trace: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="Folder to record every message in, for the lab; needs the extra `lab`."),
]


def broker(
    id: Id,
    listen: Listen = None,
    link: Link = None,
    http: Http = None,
    config: NetworkFile = None,
    secret: Secret = "",
    datacluster: DataCluster = None,
    coordinator: Coordinator = None,
    trace: Trace = None,
    log_level: LogLevel = "info",
    log_format: LogForm = "text",
    leash: Leash = False,
    supervised: Annotated[
        bool,
        typer.Option(
            "--supervised",
            envvar="GODWIT_SUPERVISED",
            help="A supervisor starts this broker again at once when it ends.",
        ),
    ] = False,
    listen_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run one broker in this process, until SIGTERM or Ctrl-C.

    SIGHUP stops it without goodbye: nothing is lost if it is started again at once.  The exit code
    is 3 if a coordinator has ordered it to leave the network for good.
    """
    configure(log_level, log_format, broker=id)
    network = traced(_network(id, config, secret), trace)
    services = {"datacluster": datacluster, "coordinator": coordinator}
    known = {key: url for key, url in services.items() if url is not None}
    network = checked(msgspec.structs.replace(network, **known))
    given = {"listen": listen, "links": link or None, "http": http}
    changes = {key: value for key, value in given.items() if value is not None}
    settings = checked(msgspec.structs.replace(network.of(id), **changes))
    _allow_many_connections()
    listener = None if listen_fd is None else socket.socket(fileno=listen_fd)
    server = BrokerServer(network, settings, listener=listener)
    server.orders.is_supervised = supervised
    uvloop.run(serve(server, leash=leash))
    if server.orders.ending == "leave":
        raise typer.Exit(code=LEFT)


def _network(id: str, config: Path | None, secret: str) -> NetworkSettings:
    if config is None:
        return checked(NetworkSettings(broker=[BrokerSettings(id=id)], secret=secret))
    network = load_network(config)
    return checked(msgspec.structs.replace(network, secret=secret or network.secret))


def traced(network: NetworkSettings, folder: Path | None) -> NetworkSettings:
    """`network` with traces in this folder, if there is one."""
    if folder is None:
        return network
    trace = msgspec.structs.replace(network.trace, folder=str(folder))
    return msgspec.structs.replace(network, trace=trace)


def _allow_many_connections() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def serve(server: BrokerServer, *, leash: bool) -> None:
    """Run a broker until a signal, or an order of a coordinator, ends it."""
    stopped = stop_event(leash=leash)

    def make_room() -> None:
        server.makes_room = True
        stopped.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, make_room)
    async with server:
        typer.echo(f"{server.node.name} {LISTENS} {server.url}")
        if server.http_url is not None:
            typer.echo(f"{server.node.name} {ANSWERS} {server.http_url}")
        linking = asyncio.create_task(_report_linked(server))
        await unless_stopped(stopped, server.orders.ended.wait())
        linking.cancel()
        server.makes_room = server.makes_room or server.orders.ending == "restart"


async def _report_linked(server: BrokerServer) -> None:
    await server.linked()
    typer.echo(f"{server.node.name} {LINKED}")
