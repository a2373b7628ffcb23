"""Brokers ask clients to move; and random networks in which they move while connections break."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.asynchronous import run, until
from tests.runtime.scenes import cut, publish, publishing, subscribed
from tests.runtime.test_http import Observed

from godwit.content.filters import Filter
from godwit.errors import StayedError
from godwit.overlay.topology import chain, random_tree
from godwit.runtime.broker_http import application
from godwit.runtime.settings import Limits
from godwit.simulation.oracle import Oracle
from godwit.testing.memory_network import MemoryNetwork
from godwit.testing.table_checks import table_errors
from godwit.testing.witness import WitnessedClient

JSON = [(b"content-type", b"application/json")]


async def post(
    app: Starlette,
    body: object,
    *,
    caller: str = "127.0.0.1",
    headers: list[tuple[bytes, bytes]] = JSON,
) -> tuple[int, Any]:
    """POST /move without sockets: the status, and the answer."""
    scope = {
        "type": "http", "method": "POST", "path": "/move", "headers": headers,
        "query_string": b"", "client": (caller, 7),
    }  # fmt: skip
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": text, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(m.get("body", b"") for m in sent))


@pytest.fixture(autouse=True)
def addresses_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.runtime.client_moves.url_address", lambda url: (url, 0))


# -- an operator asks ------------------------------------------------------------------------------


def test_a_client_moves_when_an_operator_asks_its_broker() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B1", "alice") as (alice, events),
        ):
            app = application(Observed(network.nodes["B1"]))
            request = {"client": "alice", "address": network.url("B3"), "broker": "B3"}
            assert await post(app, request) == (
                200,
                {"moved": ["alice"], "stayed": {}, "unknown": []},
            )
            assert alice.session.broker == "B3"
            await publish(paul, range(5))
            assert [(await anext(events)).content["x"] for _ in range(5)] == list(range(5))

    run(scenario())


def test_several_clients_move_those_that_are_named_or_so_many() -> None:
    async def scenario() -> None:
        async with MemoryNetwork(chain(2)) as network:
            clients = [
                await network.connect("B1", name=f"c{number}").__aenter__() for number in range(5)
            ]
            app = application(Observed(network.nodes["B1"]))
            named = {"clients": ["c1", "c3", "c9"], "address": network.url("B2")}
            assert await post(app, named) == (
                200,
                {"moved": ["c1", "c3"], "stayed": {}, "unknown": ["c9"]},
            )
            counted = {"count": 2, "address": network.url("B2")}
            assert (await post(app, counted))[1]["moved"] == ["c0", "c2"]
            assert [client.session.broker for client in clients] == ["B2"] * 4 + ["B1"]
            for client in clients:
                await client.close()

    run(scenario())


def test_clients_that_stay_say_why_at_once() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(3)) as network,
            subscribed(network, "B1", "alice") as (alice, _),
        ):
            app = application(Observed(network.nodes["B1"]))
            request = {"client": "alice", "address": network.url("B3"), "broker": "B2"}
            asked = asyncio.create_task(post(app, request))
            _, answer = await asyncio.wait_for(asked, 2.0)
            assert answer["stayed"] == {"alice": "B3 answers at memory://B3, not B2"}
            nowhere = {"client": "alice", "address": "godwit://nowhere:1"}
            _, answer = await post(app, nowhere)
            assert "there is no broker" in answer["stayed"]["alice"]
            assert alice.session.broker == "B1"
            network.nodes["B3"].is_stopping = True
            _, answer = await post(app, {"count": 1, "address": network.url("B3")})
            assert "B3 is stopping" in answer["stayed"]["alice"]

    run(scenario())


def test_the_more_clients_are_asked_the_longer_each_may_take() -> None:
    async def scenario() -> None:
        limits = Limits(move_timeout_s=0.3)
        async with MemoryNetwork(chain(2), limits=limits) as network:
            clients = [
                await network.connect("B1", name=f"c{number}").__aenter__() for number in range(2)
            ]
            asked: list[float] = []
            for client in clients:
                client._mover.on_asked = lambda request: asked.append(request.within_s)  # type: ignore[method-assign]
            app = application(Observed(network.nodes["B1"]))
            _, answer = await post(app, {"count": 2, "address": network.url("B2")})
            assert asked == [0.6, 0.6]
            assert answer["stayed"] == {"c0": "no answer", "c1": "no answer"}
            for client in clients:
                await client.close()

    run(scenario())


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        pytest.param(b"{", 400, "not a request to move", id="no JSON"),
        pytest.param(b"\xff\xfe", 400, "not a request to move", id="no text"),
        pytest.param({"client": "c"}, 400, "missing required field `address`", id="to nowhere"),
        pytest.param({"address": "memory://B2"}, 400, "say who", id="nobody"),
        pytest.param({"address": "memory://B2", "count": -1}, 400, "say who", id="less than one"),
        pytest.param(
            {"address": "memory://B2", "count": 1, "client": "c"}, 400, "say who", id="both"
        ),
        pytest.param(
            {"address": "memory://B2", "client": "c", "speed": 9}, 400, "speed", id="an unknown key"
        ),
    ],
)
def test_what_is_no_request_is_refused(body: object, status: int, why: str) -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network:
            found, answer = await post(application(Observed(network.nodes["B1"])), body)
            assert (found, why in answer["error"]) == (status, True), answer

    run(scenario())


def test_only_this_machine_may_ask_and_no_web_page() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network:
            app = application(Observed(network.nodes["B1"]))
            body = {"count": 1, "address": network.url("B2")}
            for caller, status in (("10.0.0.7", 403), ("nonsense", 403), ("::1", 200)):
                assert (await post(app, body, caller=caller))[0] == status
            text = [(b"content-type", b"text/plain")]
            assert (await post(app, body, headers=text))[0] == 415
            network.nodes["B1"].secret = "pss"  # noqa: S105  Only here.
            app = application(Observed(network.nodes["B1"]))
            for shown, status in ((b"pss", 200), (b"psst", 403)):
                known = [*JSON, (b"authorization", b"Bearer " + shown)]
                assert (await post(app, body, caller="10.0.0.7", headers=known))[0] == status

    run(scenario())


# -- random networks -------------------------------------------------------------------------------

SETTLE_S = 20.0


class Walker:
    """Publishes, subscribes, and moves about; the oracle judges."""

    def __init__(self, witnessed: WitnessedClient, network: MemoryNetwork, random: Random) -> None:
        self.witnessed = witnessed
        self.client = witnessed.client
        self.moves = self.stays = 0
        self._network = network
        self._random = random

    async def prepare(self) -> None:
        if self._random.random() < 0.8:
            name = f"class = '{self.client.name}' and x is present"
            await self.witnessed.advertise(Filter.parse(name))
        for _ in range(self._random.randint(0, 2)):
            wanted = self._random.choice(("x > 3", "x < 6", "class = 'c0'", "x is present"))
            await self.witnessed.subscribe(Filter.parse(wanted))

    async def talk(self, publications: int) -> None:
        if not self.client.session.advertisements:
            return
        for number in range(publications):
            await self.witnessed.publish({"class": self.client.name, "x": number % 10})
            if self._random.random() < 0.3:
                await asyncio.sleep(self._random.choice((0, 0.001, 0.003)))

    async def walk(self, moves: int) -> None:
        for _ in range(moves):
            await asyncio.sleep(self._random.expovariate(50.0))
            to = self._random.choice(list(self._network.nodes))
            try:
                await self.client.move(self._network.url(to), within_s=SETTLE_S)
                self.moves += 1
            except StayedError:
                self.stays += 1


async def disturb(network: MemoryNetwork, random: Random) -> None:
    """Cut connections, of links and of clients, also those that are on the move."""
    while True:
        await asyncio.sleep(random.expovariate(150.0))
        node = random.choice(list(network.nodes.values()))
        ports = list(node.ports.values())
        if ports:
            cut(random.choice(ports).connection)


async def random_walk(seed: int) -> tuple[int, int, int]:
    """Moves, stays and deliveries of one seed, in which nothing went wrong."""
    random = Random(seed)
    topology = random_tree(random.randint(2, 6), random)
    oracle = Oracle(settle_s=SETTLE_S)
    limits = Limits(link_s=SETTLE_S, session_s=SETTLE_S)
    async with MemoryNetwork(topology, limits=limits) as network:
        walkers = []
        for number in range(random.randint(2, 5)):
            client = network.connect(random.choice(topology.brokers), name=f"c{number}")
            witnessed = await WitnessedClient(client, oracle).__aenter__()
            walkers.append(Walker(witnessed, network, random))
            await walkers[-1].prepare()
        disturbing = asyncio.create_task(disturb(network, random))
        try:
            await asyncio.gather(
                *(walker.talk(150) for walker in walkers), *(walker.walk(4) for walker in walkers)
            )
        finally:
            disturbing.cancel()
        for walker in walkers:
            await walker.client.flush()
        await until(lambda: not oracle.is_owed)
        sessions = [walker.client.session for walker in walkers]
        await until(lambda: not table_errors(topology, network.tables(), sessions))
        for node in network.nodes.values():
            node.broker.routing.check()
        for walker in walkers:
            await walker.witnessed.__aexit__(None, None, None)
    oracle.finish(0.0)
    assert oracle.is_satisfied, f"seed {seed}: {oracle.violations[:5]}"
    for session in (walker.client.session for walker in walkers):
        assert not session.restarts or not (session.advertisements or session.subscriptions)
    totals = [(walker.moves, walker.stays) for walker in walkers]
    return sum(m for m, _ in totals), sum(s for _, s in totals), oracle.deliveries


SEEDS, SEEDS_PER_TEST = 24, 4


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_clients_move_in_random_networks_while_connections_break(first: int) -> None:
    moves = deliveries = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        try:
            walked = run(random_walk(seed), within_s=60.0)
        except BaseException as error:
            error.add_note(f"the seed is {seed}")
            raise
        moves += walked[0]
        deliveries += walked[2]
    assert moves > 10
    assert deliveries > 100
