"""Asks a coordinator which broker to use: registeruser, requestbroker."""

from __future__ import annotations

from collections.abc import Callable

from godwit.api.coordinator_api import (
    REGISTER_USER,
    REQUEST_BROKER,
    Assigned,
    RegisterUser,
    RequestBroker,
)
from godwit.client.broker_connection import BrokerFinder, BrokerPlace
from godwit.content.geography import GeoPoint
from godwit.errors import UnreachableError, UsageError
from godwit.http.errors import RestError
from godwit.http.http_client import LATER, HttpClient, server_url
from godwit.protocol.call import Opener

SCHEME = "bcs+"
ANSWER_S = 5.0


def finder(
    url: str,
    user: str,
    location: tuple[float, float] | None,
    resolve: Callable[[str], Opener],
) -> BrokerFinder:
    """The coordinator at `url`, bcs+http://HOST:PORT; users have the names of their clients."""
    at = None if location is None else GeoPoint(*location)
    server = server_url(url.removeprefix(SCHEME))

    async def find() -> BrokerPlace:
        # One attempt: the connection retries by itself.
        async with HttpClient(server, answer_s=ANSWER_S, attempts=1) as coordinator:
            assigned = await _ask(coordinator, user, at)
        try:
            return BrokerPlace(assigned.url, resolve(assigned.url))
        except UsageError as error:
            raise ConnectionError(
                f"the coordinator named a broker that cannot be used: {error}"
            ) from None

    return BrokerFinder(url, find)


async def _ask(coordinator: HttpClient, user: str, at: GeoPoint | None) -> Assigned:
    try:
        await coordinator.call(REGISTER_USER, RegisterUser(user, at))
        return await coordinator.call(REQUEST_BROKER, RequestBroker(user, at))
    except UnreachableError as error:
        raise ConnectionError(f"the coordinator does not answer: {error}") from None
    except RestError as error:
        if error.status in LATER:
            raise ConnectionError(f"the coordinator answered: {error}") from None
        raise
