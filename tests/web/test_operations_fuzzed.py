"""The dashboard's HTTP operations, with requests made from its OpenAPI description.

schemathesis makes requests that fit the description and requests that do not, on a real network
with traffic.  No answer may be a server error, and each must have the form that is described.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.sweeps import IS_WHOLE, seeds
from tests.web.live_scene import QUOTE, brokers_here, dashboard_of, directory_of, traffic

from godwit.web.recorded_trace import RecordedTrace
from godwit.web.replaying import Replay

schemathesis = pytest.importorskip(
    "schemathesis", reason="needs schemathesis, which is in the extra `dev`: make setup"
)

#: Requests of each kind to each operation; a hundred in `make sweep`.
EXAMPLES = seeds(8, whole=100)
BOTH = {"/api/overview", "/api/history", "/api/activity", "/api/channels", "/api/lab"}
LIVE = BOTH | {"/api/filters", "/api/matches", "/api/actions", "/api/why", "/api/client"}
RECORDED = BOTH | {"/api/replay"}
#: What requests are about in this network: a text that is made up names nothing that there is.
#: Every second request takes the next of these.
KNOWN: dict[str, list[Any]] = {
    "record": [QUOTE, "[class,'QUOTE'],[price,1e400]", '{"class": []}', "{}"],
    "broker": ["B2", "B1", "B9"], "to": ["B1", "sue", "B2"], "publisher": ["paul", "sue", ""],
    "clients": [["sue"], []], "plan": ["{}", '{"brokers": {}}', "["],
}  # fmt: skip
#: Imports all experiments, and takes no fields.
SLOW = "/api/lab"


@contextlib.asynccontextmanager
async def live() -> AsyncIterator[str]:
    """The URL of a dashboard in front of two brokers."""
    async with (
        brokers_here() as running,
        traffic(running["B1"].url, running["B2"].url),
        dashboard_of(directory_of(running)) as (_dashboard, url),
    ):
        yield url


@contextlib.asynccontextmanager
async def recorded() -> AsyncIterator[str]:
    """The URL of a trace in which nothing happened."""
    replay = Replay(RecordedTrace(start_s=0.0, end_s=10.0), "a trace")
    async with replay.serve("127.0.0.1:0") as url:
        yield url


@contextlib.contextmanager
def served(scene: Callable[[], AbstractAsyncContextManager[str]]) -> Iterator[str]:
    """The URL of a scene that is served in another thread."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    urls: list[str] = []

    async def serve(stopped: asyncio.Event) -> None:
        async with scene() as url:
            urls.append(url)
            ready.set()
            await stopped.wait()

    stopped = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(stopped),))
    thread.start()
    try:
        assert ready.wait(20), "the dashboard is not up"
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()


def fuzz(operation: Any, mode: Any) -> int:
    """The number of requests that were answered."""
    answered = 0
    checks = [schemathesis.checks.not_a_server_error]
    conforms = schemathesis.checks.CHECKS.get_by_names(["response_schema_conformance"])

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        nonlocal answered
        if answered % 2 and isinstance(case.body, dict):
            for field in case.body.keys() & KNOWN.keys():
                case.body[field] = KNOWN[field][answered // 2 % len(KNOWN[field])]
        case.call_and_validate(checks=[*checks, *conforms], timeout=30)
        answered += 1

    ask()
    return answered


@pytest.mark.parametrize(
    ("scene", "operations"), [(live, LIVE), (recorded, RECORDED)], ids=["live", "recorded"]
)
def test_no_request_makes_a_server_error(
    scene: Callable[[], AbstractAsyncContextManager[str]], operations: set[str]
) -> None:
    modes = schemathesis.GenerationMode
    with served(scene) as url:
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
        seen = set()
        for result in schema.get_all_operations():
            operation = result.ok()
            seen.add(operation.path)
            if operation.path == SLOW and not IS_WHOLE:
                continue
            assert fuzz(operation, modes.POSITIVE) > 0
            if operation.body or operation.query:
                assert fuzz(operation, modes.NEGATIVE) > 0
        assert seen == operations
