"""What an operator sees of a broker over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from tests.asynchronous import run, until
from tests.runtime.scenes import publish, publishing, subscribed
from tests.sharing.clusters import MemoryCluster

from godwit.broker.modules import PolicyModule
from godwit.errors import UsageError
from godwit.overlay.topology import chain
from godwit.policies import offload
from godwit.policies.allocation.cbc import Cbc
from godwit.runtime.broker_http import application
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.server import BrokerServer
from godwit.runtime.settings import BrokerSettings, NetworkSettings
from godwit.sharing.gateway import Gateway
from godwit.testing.memory_network import MemoryNetwork

MANUAL = Path(__file__).parents[2] / "docs" / "operating.md"


class Observed:
    def __init__(self, node: BrokerNode, *troubles: str) -> None:
        self.node = node
        self.gateway = Gateway(node)
        self.tracing = None
        self.troubles = list(troubles)


async def get(app: Starlette, path: str) -> tuple[int, str]:
    """GET without sockets: the status, and the body as text."""
    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(m.get("body", b"") for m in sent).decode()


def metrics(text: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def modules_of_b1(broker: str) -> Sequence[PolicyModule]:
    return [*offload.modules()(broker), Cbc()] if broker == "B1" else ()


def test_metrics_have_the_names_of_the_manual_and_the_right_numbers() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2), cluster=MemoryCluster(), modules=modules_of_b1) as network,
            publishing(network, "B1") as paul,
            subscribed(network, "B1", "alice"),
            subscribed(network, "B2", "bob"),
        ):
            node = network.nodes["B1"]
            await publish(paul, range(7))
            node.control["offload", "$LOCAL_PIE"] += 1
            node.decisions.sessions["acceptor", "moved"] += 1
            node.decisions.differences["before"] = 0.5
            node.decisions.outcome["input", "error"] = 0.1
            node.dropped["too many hops"] += 3
            node.decisions["grape", "stayed"] += 2
            node.broker.parts.gaps["B2"] += 1
            status, text = await get(application(Observed(node)), "/metrics")

        assert status == 200
        found = metrics(text)
        documented = set(re.findall(r"`(godwit_\w+)", MANUAL.read_text()))
        assert len(documented) > 10
        documented.remove("godwit_balancing_bound")  # Only edge brokers: test_balancing_http.py.
        assert {
            name.partition("{")[0] for name in found if name.startswith("godwit_")
        } == documented
        assert found['godwit_messages_handled_total{kind="Publication"}'] == 7
        assert found['godwit_messages_handled_total{kind="Subscription"}'] == 2
        assert found["godwit_deliveries_total"] == 7
        assert found['godwit_dropped_total{reason="too many hops"}'] == 3
        assert found['godwit_decisions_total{action="stayed",policy="grape"}'] == 2
        assert found['godwit_gaps_total{broker="B2"}'] == 1
        assert found["godwit_missing_parts"] == 0
        assert found['godwit_peers{kind="client",state="connected"}'] == 2
        assert found['godwit_peers{kind="link",state="connected"}'] == 1
        # With those of the load balancer.
        assert found["godwit_subscriptions"] == 3
        assert found["godwit_advertisements"] == 2

    run(scenario())


def test_routing_shows_the_tables() -> None:
    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2)) as network,
            publishing(network, "B1"),
            subscribed(network, "B2", "bob"),
        ):
            app = application(Observed(network.nodes["B2"]))
            status, text = await get(app, "/routing")
        assert status == 200
        shown = msgspec.json.decode(text)
        (advertisement,), (subscription,) = shown["advertisements"], shown["subscriptions"]
        assert (advertisement[:5], subscription[:4]) == ("paul/", "bob/")
        assert shown == {
            "broker": "B2",
            "advertisements": {advertisement: "neighbour B1"},
            "subscriptions": {subscription: "client bob"},
            "told": {"B1": [subscription]},
            "links": {"B1": "primary"},
        }

    run(scenario())


@pytest.mark.parametrize(("troubles", "expected"), [((), 200), (("B1: no link",), 503)])
def test_a_broker_without_its_links_is_not_healthy(
    troubles: tuple[str, ...], expected: int
) -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network:
            status, text = await get(
                application(Observed(network.nodes["B1"], *troubles)), "/healthz"
            )
        assert status == expected
        assert msgspec.json.decode(text) == {
            "broker": "B1",
            "healthy": not troubles,
            "troubles": list(troubles),
        }

    run(scenario())


def test_anything_else_is_not_there() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network:
            assert (await get(application(Observed(network.nodes["B1"])), "/"))[0] == 404

    run(scenario())


async def ask(url: str) -> int:
    """The status of GET /healthz, over a socket."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
    status = int((await reader.readline()).split()[1])
    writer.close()
    await writer.wait_closed()
    return status


def test_a_live_broker_is_healthy_while_its_link_is_there() -> None:
    async def scenario() -> None:
        b1 = BrokerSettings(id="B1", http="127.0.0.1:0")
        alone = NetworkSettings(broker=[b1])
        async with BrokerServer(alone, b1) as first:
            b2 = BrokerSettings(id="B2", http="127.0.0.1:0", links=[first.url])
            async with BrokerServer(NetworkSettings(broker=[b2]), b2) as second:
                await second.linked()
                assert first.http_url is not None
                assert second.http_url is not None
                assert [await ask(first.http_url), await ask(second.http_url)] == [200, 200]
                await first.__aexit__()
                await until(lambda: bool(second.troubles))
                assert await ask(second.http_url) == 503
                taken = BrokerSettings(id="B3", http=second.http_url.removeprefix("http://"))
                with pytest.raises(
                    UsageError, match=r"cannot serve HTTP on 127\.0\.0\.1:\d+: .* in use"
                ):
                    async with BrokerServer(NetworkSettings(broker=[taken]), taken):
                        pass

    run(scenario())
