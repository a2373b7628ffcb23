"""Asking a coordinator which broker to use: registeruser, requestbroker."""

from __future__ import annotations

from collections.abc import Callable

from godwit.client.line import Guide, Place
from godwit.errors import UnreachableError, UsageError
from godwit.rest.bcs import (
    REGISTER_USER,
    REQUEST_BROKER,
    Assigned,
    Location,
    RegisterUser,
    RequestBroker,
)
from godwit.rest.calling import LATER, Caller, server_url
from godwit.rest.errors import RestError
from godwit.wire.call import Opener

SCHEME = "bcs+"
ANSWER_S = 5.0


def guide(
    url: str,
    user: str,
    location: tuple[float, float] | None,
    resolve: Callable[[str], Opener],
) -> Guide:
    """The coordinator at `url`, bcs+http://HOST:PORT; its users are clients of the same name."""
    at, server = _location(location), server_url(url.removeprefix(SCHEME))

    async def find() -> Place:
        # The line tries again by itself, so we need not.
        async with Caller(server, answer_s=ANSWER_S, attempts=1) as coordinator:
            assigned = await _ask(coordinator, user, at)
        try:
            return Place(assigned.url, resolve(assigned.url))
        except UsageError as error:
            raise ConnectionError(f"the coordinator sends us to nowhere: {error}") from None

    return Guide(url, find)


async def _ask(coordinator: Caller, user: str, at: Location | None) -> Assigned:
    try:
        await coordinator.call(REGISTER_USER, RegisterUser(user, at))
        return await coordinator.call(REQUEST_BROKER, RequestBroker(user, at))
    except UnreachableError as error:
        raise ConnectionError(f"no coordinator: {error}") from None
    except RestError as error:
        if error.status in LATER:
            raise ConnectionError(f"the coordinator says: {error}") from None
        raise


def _location(location: tuple[float, float] | None) -> Location | None:
    if location is None:
        return None
    latitude, longitude = location
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        raise UsageError(
            f"location {location}: latitudes are -90 to 90, longitudes -180 to 180 degrees"
        )
    return Location(latitude, longitude)
