"""A client asks a coordinator for its broker; here the answers are wrong, or the questions."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.asynchronous import run

from godwit.client import connect
from godwit.errors import RefusedError, UnreachableError, UsageError
from godwit.network.server import BrokerServer
from godwit.network.settings import BrokerSettings, NetworkSettings
from godwit.rest import bcs
from godwit.rest.answering import application
from godwit.rest.errors import RestError
from godwit.rest.operations import served
from godwit.rest.serving import serve


class Oracle:
    """A coordinator that says what it is told to say, one thing after the other."""

    def __init__(self, *answers: str | RestError) -> None:
        self._answers = list(answers)
        self.asked: list[bcs.RequestBroker] = []

    async def register(self, request: bcs.RegisterUser) -> bcs.Registered:
        return bcs.Registered(request.user, 10.0)

    async def assign(self, request: bcs.RequestBroker) -> bcs.Assigned:
        self.asked.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, RestError):
            raise answer
        return bcs.Assigned("B1", answer, "because")

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        operations = [
            served(bcs.REGISTER_USER, self.register),
            served(bcs.REQUEST_BROKER, self.assign),
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
                asked = [bcs.RequestBroker("ann", bcs.Location(60.0, 25.0))] * 3
                assert oracle.asked == asked, "later, then nobody there, then a broker"
                places = [place.where for place in client.line.places]
                assert places[0] == server.url
                assert url in places

    run(scenario())


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        pytest.param(RestError(400, "go away"), RefusedError, "go away", id="it says no"),
        pytest.param("http://nowhere", UnreachableError, "sends us to nowhere", id="it raves"),
        pytest.param(RestError(503, "soon"), UnreachableError, "says: .*soon", id="it is busy"),
    ],
)
def test_a_coordinator_that_does_not_help(
    answer: str | RestError, error: type[Exception], why: str
) -> None:
    async def scenario() -> None:
        async with Oracle(answer).serving() as url:
            with pytest.raises(error, match=why):
                await connect(url, connect_s=0.5).__aenter__()

    run(scenario())


@pytest.mark.parametrize(
    ("url", "location", "why"),
    [
        ("bcs+http://a:b", None, "no address of a server"),
        ("bcs+godwit://a:1", None, "no address of a server"),
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
