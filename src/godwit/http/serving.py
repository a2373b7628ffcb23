"""Serves a web application on a port, in the running event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from socket import AF_INET, AF_INET6, create_server, socket

import uvicorn
from starlette.applications import Starlette

from godwit.errors import UsageError
from godwit.protocol.addresses import why


@contextlib.asynccontextmanager
async def serve(app: Starlette, host: str, port: int) -> AsyncIterator[str]:
    """Serve on HOST:PORT inside the context, which is the URL; port 0 is any free one."""
    listener = _listening(host, port)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1
    )
    server = _QuietServer(config)
    task = asyncio.create_task(server.serve([listener]))
    while not (server.started or task.done()):  # noqa: ASYNC110  There is no event for it.
        await asyncio.sleep(0.01)
    try:
        host, port = listener.getsockname()[:2]
        yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await task


def _listening(host: str, port: int) -> socket:
    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET)
    except OSError as error:
        raise UsageError(f"cannot serve HTTP on {host}:{port}: {why(error)}") from None


class _QuietServer(uvicorn.Server):
    """Leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
