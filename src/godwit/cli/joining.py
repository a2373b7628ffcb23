"""A broker that joins a running network in this process, as its coordinator says."""

from __future__ import annotations

import asyncio

import msgspec
import typer
import uvloop

from godwit.api import network_api
from godwit.api.network_api import ChangeRequest, ChangeState, NetworkChange
from godwit.cli.broker import serve
from godwit.cli.network_commands import asked_by, follow
from godwit.cli.network_report import ChangeProgress, change_lines
from godwit.config import checked
from godwit.errors import UsageError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.runtime.broker_orders import LEFT
from godwit.runtime.logs import configure
from godwit.runtime.server import BrokerServer
from godwit.runtime.settings import BrokerSettings, NetworkSettings


def run_joining(
    request: ChangeRequest, at: str, secret: str, *, listen: str, http: str, log_level: str
) -> int:
    """Run the broker until it is stopped; the answer is the exit code."""
    (id,) = request.brokers
    configure(log_level, "text", broker=id)
    return uvloop.run(_run(request, at, secret, listen=listen, http=http))


async def _run(request: ChangeRequest, at: str, secret: str, *, listen: str, http: str) -> int:
    (id,) = request.brokers
    async with HttpClient(at, secret=secret) as coordinator:
        request = msgspec.structs.replace(request, asked_by=asked_by())
        change = await coordinator.call(network_api.BEGIN_CHANGE, request)
        view = await coordinator.call(network_api.NETWORK, Nothing())
        urls = [b.account.url for b in view.brokers if b.broker == request.link and b.account]
        if not urls:
            raise UsageError(f"the coordinator does not know the address of {request.link}")
        settings = BrokerSettings(id=id, listen=listen, http=http, links=urls)
        network = NetworkSettings(broker=[settings], secret=secret, coordinator=at)
        server = BrokerServer(checked(network), settings)
        following = asyncio.create_task(_followed(coordinator, change, server))
        try:
            await serve(server, leash=False)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    if server.orders.ending == "leave":
        return LEFT
    joined = following.result() if following.done() and not following.cancelled() else None
    return 1 if joined is ChangeState.FAILED else 0


async def _followed(
    coordinator: HttpClient, change: NetworkChange, server: BrokerServer
) -> ChangeState:
    """Say how the change ends; a broker that could not join is stopped."""
    change = await follow(coordinator, change, ChangeProgress())
    for line in change_lines(change):
        typer.echo(line)
    if change.state is ChangeState.FAILED:
        server.orders.ended.set()
    return change.state
