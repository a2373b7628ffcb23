"""A client asks a coordinator for its broker: wrong answers, and wrong arguments."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.asynchronous import run

from godwit.api import coordinator_api
from godwit.client import connect
from godwit.client.coordinated import finder
from godwit.content.geography import GeoPoint
from godwit.errors import RefusedError, UsageError
from godwit.http.application import application
from godwit.http.errors import RestError
from godwit.http.operations import served
from godwit.http.serving import serve
from godwit.protocol.call import url_opener
from godwit.runtime.server import BrokerServer
from godwit.runtime.settings import BrokerSettings, NetworkSettings


class Oracle:
    """A coordinator that gives the answers of a list, in turn."""

    def __init__(self, *answers: str | RestError) -> None:
        self._answers = list(answers)
        self.asked: list[coordinator_api.RequestBroker] = []

    async def register(self, request: coordinator_api.RegisterUser) -> coordinator_api.Registered:
        return coordinator_api.Registered(request.user, 10.0)

    async def assign(self, request: coordinator_api.RequestBroker) -> coordinator_api.Assigned:
        self.asked.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, RestError):
            raise answer
        return coordinator_api.Assigned("B1", answer, "because")

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        operations = [
            served(coordinator_api.REGISTER_USER, self.register),
            served(coordinator_api.REQUEST_BROKER, self.assign),
        ]
        async with serve(application(operations, title="C"), "127.0.0.1", 0) as url:
            yield f"bcs+{url}"


@contextlib.asynccontextmanager
async def broker() -> AsyncIterator[BrokerServer]:
    settings = BrokerSettings(id="B1")
    async with BrokerServer(NetworkSettings(broker=[settings]), settings) as server:
        yield server


def test_it_goes_where_it_is_told_and_stays_there() -> None:
    async def scenario() -> None:
        async with broker() as server:
            oracle = Oracle(RestError(503, "not yet"), "godwit://127.0.0.1:1", server.url)
            async with (
                oracle.serving() as url,
                connect(url, name="ann", location=(60.0, 25.0), fall_back_s=0.0) as client,
            ):
                assert client.session.broker == "B1"
                asked = [coordinator_api.RequestBroker("ann", GeoPoint(60.0, 25.0))] * 3
                assert oracle.asked == asked, "later, then nobody there, then a broker"
                places = [place.where for place in client.broker_connection.places]
                assert places[0] == server.url
                assert url in places

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param("http://nowhere", "named a broker that cannot be used", id="no broker"),
        pytest.param(RestError(503, "soon"), "answered: .*soon", id="busy"),
    ],
)
def test_a_coordinator_that_does_not_help_is_asked_again(answer: str | RestError, why: str) -> None:
    """As if a broker could not be reached: an OSError."""

    async def scenario() -> None:
        async with Oracle(answer).serving() as url:
            with pytest.raises(OSError, match=why):
                await finder(url, "ann", None, url_opener).find()

    run(scenario())


def test_a_coordinator_that_refuses_a_client_is_not_asked_again() -> None:
    async def scenario() -> None:
        async with Oracle(RestError(400, "go away")).serving() as url:
            with pytest.raises(RefusedError, match="go away"):
                await connect(url).__aenter__()

    run(scenario())


@pytest.mark.parametrize(
    ("url", "location", "why"),
    [
        ("bcs+http://a:b", None, "not the address of a server"),
        ("bcs+godwit://a:1", None, "not the address of a server"),
        ("bcs+http://a:1", (91.0, 0.0), "latitudes are -90 to 90"),
        ("bcs+http://a:1", (0.0, 181.0), "longitudes -180 to 180"),
        ("http://a:1", None, "godwit://HOST:PORT"),
    ],
)
def test_nonsense_is_refused_at_once(
    url: str, location: tuple[float, float] | None, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        connect(url, location=location)
