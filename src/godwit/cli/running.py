"""Commands that run brokers: one, or a whole network on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import socket
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer
import uvloop

from godwit.config import checked
from godwit.errors import UsageError
from godwit.network.logs import LogFormat, configure
from godwit.network.processes import ANSWERS, LINKED, LISTENS
from godwit.network.server import BrokerServer
from godwit.network.settings import (
    BrokerSettings,
    NetworkSettings,
    dump_network,
    load_network,
    network_of,
)
from godwit.network.together import Together
from godwit.overlay.topology import Topology, balanced_tree, chain, star

T = TypeVar("T")

Id = Annotated[str, typer.Option("--id", help="Name of the broker, unique in the network.")]
Listen = Annotated[str | None, typer.Option(help="HOST:PORT for clients and neighbours.")]
Link = Annotated[
    list[str] | None, typer.Option(help="A neighbour to dial, godwit://HOST:PORT; repeat for more.")
]
Http = Annotated[
    str | None,
    typer.Option(help="HOST:PORT for /metrics, /healthz, /routing, /move, and channels."),
]
Config = Annotated[
    Path | None, typer.Option(help="A network file; the broker with this id is run.")
]
Secret = Annotated[
    str, typer.Option(envvar="GODWIT_SECRET", help="Shared by the brokers of a network.")
]
DataCluster = Annotated[
    str | None, typer.Option(help="Where channels are found: http://HOST:PORT of a data cluster.")
]
Coordinator = Annotated[
    str | None, typer.Option(help="To whom the broker reports its load: http://HOST:PORT.")
]
Trace = Annotated[
    Path | None, typer.Option(help="A folder to write all that happens to; needs godwit[lab].")
]
Level = Annotated[str, typer.Option(help="debug, info, warning or error.")]


def broker(
    id: Id,
    listen: Listen = None,
    link: Link = None,
    http: Http = None,
    config: Config = None,
    secret: Secret = "",
    datacluster: DataCluster = None,
    coordinator: Coordinator = None,
    trace: Trace = None,
    log_level: Level = "info",
    log_format: Annotated[LogFormat, typer.Option(help="text or json.")] = "text",
    leash: Annotated[bool, typer.Option(help="Stop when standard input is closed.")] = False,
    listen_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run one broker in this process, until SIGTERM or Ctrl-C.

    SIGHUP ends it without a goodbye: nothing is lost if it is started again at once.
    """
    configure(log_level, log_format, broker=id)
    network = _traced(_network(id, config, secret), trace)
    services = {"datacluster": datacluster, "coordinator": coordinator}
    known = {key: url for key, url in services.items() if url is not None}
    network = checked(msgspec.structs.replace(network, **known))
    given = {"listen": listen, "links": link or None, "http": http}
    changes = {key: value for key, value in given.items() if value is not None}
    settings = checked(msgspec.structs.replace(network.of(id), **changes))
    _allow_many_connections()
    listener = None if listen_fd is None else socket.socket(fileno=listen_fd)
    uvloop.run(_serve(BrokerServer(network, settings, listener=listener), leash=leash))


def _network(id: str, config: Path | None, secret: str) -> NetworkSettings:
    if config is None:
        return checked(NetworkSettings(broker=[BrokerSettings(id=id)], secret=secret))
    network = load_network(config)
    return checked(msgspec.structs.replace(network, secret=secret or network.secret))


def _traced(network: NetworkSettings, folder: Path | None) -> NetworkSettings:
    if folder is None:
        return network
    trace = msgspec.structs.replace(network.trace, folder=str(folder))
    return msgspec.structs.replace(network, trace=trace)


def _allow_many_connections() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(server: BrokerServer, *, leash: bool) -> None:
    stopped = told_to_stop(leash=leash)

    def make_room() -> None:
        server.makes_room = True
        stopped.set()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, make_room)
    async with server:
        typer.echo(f"{server.node.name} {LISTENS} {server.url}")
        if server.http_url is not None:
            typer.echo(f"{server.node.name} {ANSWERS} {server.http_url}")
        linking = asyncio.create_task(_say_linked(server))
        await stopped.wait()
        linking.cancel()


async def _say_linked(server: BrokerServer) -> None:
    await server.linked()
    typer.echo(f"{server.node.name} {LINKED}")


def told_to_stop(*, leash: bool = False) -> asyncio.Event:
    """Set by SIGTERM, by SIGINT, and if on a leash by the end of standard input."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if leash:
        loop.add_reader(sys.stdin.fileno(), stopped.set)
    return stopped


def up(
    file: Annotated[Path, typer.Argument(help="A network file, as `godwit topology` prints it.")],
    trace: Trace = None,
    log_level: Level = "warning",
) -> None:
    """Run a whole network of broker processes on this machine, until Ctrl-C.

    If the file has [services.datacluster] or [services.coordinator], these as well.
    """
    uvloop.run(_up(_traced(load_network(file), trace), log_level))


async def _up(network: NetworkSettings, log_level: str) -> None:
    stopped = told_to_stop()
    starting = Together(network, log_level=log_level)
    everything = [f"{len(network.broker)} brokers", *starting.services]
    typer.echo(f"starting {', '.join(everything)} ...")
    running = await _unless(stopped, starting.__aenter__())
    if running is None:
        return
    try:
        for each in running.brokers.network.broker:
            http = "" if each.http is None else f"   {running.brokers.http(each.id)}/metrics"
            typer.echo(f"  {each.id}   godwit://{each.listen}{http}")
        for name, service in running.services.items():
            typer.echo(f"  {name}   {service.url}")
        typer.echo("all are linked; Ctrl-C stops them")
        ended = await _unless(stopped, running.first_end())
        if ended is not None:
            raise UsageError(ended)
        typer.echo("stopping ...")
    finally:
        codes = await running.stop()
    if any(codes.values()):
        raise UsageError(f"some did not stop in good order: {codes}")


async def _unless(stopped: asyncio.Event, doing: Coroutine[Any, Any, T]) -> T | None:
    """What comes of `doing`; nothing if we are told to stop before it is done."""
    done, stopping = asyncio.create_task(doing), asyncio.create_task(stopped.wait())
    await asyncio.wait({done, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if done.done():
        return await done
    done.cancel()
    await asyncio.gather(done, return_exceptions=True)
    return None


def topology(
    shape: Annotated[str, typer.Argument(help="tree, chain or star.")] = "tree",
    brokers: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = 7,
    fanout: Annotated[int, typer.Option(min=1, help="Below each broker of a tree.")] = 2,
    port: Annotated[int, typer.Option(min=1, max=65_000, help="Of the first broker.")] = 7400,
    http_port: Annotated[
        int | None, typer.Option(min=1, max=65_000, help="Of the first; none without it.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where all of them listen.")] = "127.0.0.1",
) -> None:
    """Print a network file: brokers, ports and links."""
    shown = _shape(shape, brokers, fanout)
    network = network_of(shown, host=host, port=port, http_port=http_port)
    typer.echo(dump_network(network), nl=False)


def _shape(shape: str, brokers: int, fanout: int) -> Topology:
    match shape:
        case "tree":
            return balanced_tree(brokers, fanout=fanout)
        case "chain":
            return chain(brokers)
        case "star":
            return star(brokers - 1)
        case _:
            raise UsageError(f"no shape {shape!r}; choose from tree, chain, star")
