"""The load balancer over HTTP: what it tells, what it obeys, and what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from tests.asynchronous import until
from tests.runtime.test_http import Observed, get, metrics

from godwit.api import balancing_api
from godwit.api.balancing_api import BalancingAccount
from godwit.broker.effects import Decision
from godwit.overlay.topology import star
from godwit.policies import offload
from godwit.policies.offload.offload_module import COMMANDS, ROLE_S, Offload
from godwit.policies.offload.settings import BalancingSettings
from godwit.runtime.broker_http import application
from godwit.runtime.decision_log import Decisions
from godwit.testing import run_in_virtual_time
from godwit.testing.memory_network import MemoryNetwork

#: Roles are found; nothing else happens by itself.
SETTINGS = BalancingSettings(local_detection_min_s=3_600, local_detection_max_s=3_600)
#: The caller has hung up.
CLOSED = {"type": "http.disconnect"}


@asynccontextmanager
async def balancing() -> AsyncIterator[MemoryNetwork]:
    """B1 is the head of B2 and B3."""
    async with MemoryNetwork(star(2), modules=offload.modules(SETTINGS)) as network:
        await asyncio.sleep(ROLE_S + 1)
        yield network


async def post(app: Starlette, path: str, body: object, host: str = "127.0.0.1") -> Any:
    """POST without sockets: the status, and the answer."""
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
        "client": (host, 1),
    }
    messages = [{"type": "http.request", "body": msgspec.json.encode(body)}, CLOSED]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], msgspec.json.decode(text)


def fields(kind: type[msgspec.Struct]) -> set[str]:
    return set(kind.__struct_fields__)


@pytest.mark.parametrize(("broker", "role"), [("B1", "head"), ("B2", "edge")])
def test_the_answer_has_all_that_the_module_tells(broker: str, role: str) -> None:
    async def scenario() -> None:
        async with balancing() as network:
            node = network.nodes[broker]
            edges = network.nodes["B2"].broker.modules[Offload.name]
            await until(lambda: bool(edges.account(node.now_s()).get("known")))
            told = node.broker.modules[Offload.name].account(node.now_s())
            status, text = await get(application(Observed(node)), "/balancing")
            assert status == 200
            answer = msgspec.json.decode(text, type=BalancingAccount)
            assert (answer.broker, answer.role, answer.cluster) == (broker, role, "B1")
            assert answer.status == "OK"
            assert answer.load is not None
            assert answer.load.subscriptions == 0, "control subscriptions are not those of clients"
            assert set(told) <= fields(BalancingAccount)
            _check_parts(told)

    run_in_virtual_time(scenario())


def _check_parts(told: Mapping[str, Any]) -> None:
    kinds: dict[str, type[msgspec.Struct]] = {
        "load": balancing_api.OwnLoad,
        "known": balancing_api.KnownLoad,
        "edges": balancing_api.KnownLoad,
        "session": balancing_api.SessionView,
        "decisions": balancing_api.DecisionView,
        "lower_bounds": balancing_api.LeastMaximum,
    }
    for key, kind in kinds.items():
        value = told.get(key)
        for each in value if isinstance(value, list) else [value]:
            assert set(each or ()) <= fields(kind), f"{key} has more than its answer"


def test_without_the_table_there_is_nothing_to_tell() -> None:
    async def scenario() -> None:
        async with MemoryNetwork() as network:
            app = application(Observed(network.nodes["B1"]))
            for status, text in (
                await get(app, "/balancing"),
                await post(app, "/balancing", {"command": "pause"}),
            ):
                assert status == 404
                assert "its network file has no [balancing]" in str(text)

    run_in_virtual_time(scenario())


def test_commands_are_obeyed_and_answered_with_what_holds_then() -> None:
    async def scenario() -> None:
        async with balancing() as network:
            app = application(Observed(network.nodes["B2"]))

            async def command(text: str) -> BalancingAccount:
                status, answer = await post(app, "/balancing", {"command": text})
                assert status == 200, answer
                return msgspec.convert(answer, BalancingAccount)

            assert (await command("pause")).is_paused
            found = metrics((await get(app, "/metrics"))[1])
            assert found["godwit_balancing_paused"] == 1
            assert not (await command("resume")).is_paused
            assert (await command("dry-run on")).dry_run
            found = metrics((await get(app, "/metrics"))[1])
            assert found["godwit_balancing_dry_run"] == 1
            assert not (await command("dry-run off")).dry_run
            assert (await command("abort")).session is None

    run_in_virtual_time(scenario())


def test_every_command_of_the_module_is_in_the_contract() -> None:
    for command in COMMANDS:
        msgspec.convert({"command": command}, balancing_api.BalancingCommand)


@pytest.mark.parametrize(
    ("body", "host", "status", "said"),
    [
        pytest.param({"command": "stop"}, "127.0.0.1", 400, "'stop'", id="unknown command"),
        pytest.param({}, "127.0.0.1", 400, "command", id="no command"),
        pytest.param({"command": "pause"}, "10.0.0.9", 403, "secret", id="from elsewhere"),
    ],
)
def test_what_is_wrong_is_refused(body: object, host: str, status: int, said: str) -> None:
    async def scenario() -> None:
        async with balancing() as network:
            node = network.nodes["B2"]
            found, answer = await post(application(Observed(node)), "/balancing", body, host)
            assert found == status
            assert said in answer["error"]
            account = node.broker.modules[Offload.name].account(node.now_s())
            assert not account["is_paused"]

    run_in_virtual_time(scenario())


# -- what is counted ---------------------------------------------------------------------------


def decided(action: str, **reason: float | str) -> Decision:
    return Decision(action, "s1", "B2", "B3", reason)


def test_sessions_and_moves_are_added_up() -> None:
    decisions = Decisions()
    for _ in range(3):
        decisions.record(Offload.name, decided("asked", metric="output"))
    ended: dict[str, float | str] = {
        "session": "x", "side": "offloader", "planned": 9, "asked": 5, "moved": 2, "closed": 1
    }  # fmt: skip
    nothing: dict[str, float | str] = {
        "side": "offloader", "planned": 7, "asked": 0, "moved": 0, "closed": 0
    }  # fmt: skip
    decisions.record(
        Offload.name, decided("ended", **ended, difference_before=0.5, difference_after=0.1)
    )
    decisions.record(Offload.name, decided("ended", side="acceptor", planned=4, moved=4))
    decisions.record(Offload.name, decided("gave up", **nothing))
    decisions.record(Offload.name, decided("ended", **nothing))  # A dry run.
    decisions.record("grape", decided("gave up"))

    assert decisions.sessions == {
        ("offloader", "moved"): 1,
        ("acceptor", "moved"): 1,
        ("offloader", "gave up"): 1,
        ("offloader", "nothing moved"): 1,
    }
    assert decisions.moves == {"asked": 3, "left": 2, "closed": 1, "stayed": 2, "arrived": 4}
    assert decisions.differences == {"before": 0.5, "predicted": 0.1}
    assert decisions[Offload.name, "ended"] == 3
    assert decisions["grape", "gave up"] == 1


def test_predicted_and_achieved_are_kept_of_the_last_session() -> None:
    decisions = Decisions()
    stages = {"before": 0.9, "predicted": 0.5, "achieved": 0.6, "error": 0.17}
    reason = {f"{m}_{s}": v for m in ("input", "match", "output") for s, v in stages.items()}
    decisions.record(Offload.name, decided("achieved", session="x", **reason))
    assert decisions.outcome["output", "achieved"] == 0.6
    assert decisions.outcome["input", "error"] == 0.17


def test_loads_that_policies_publish_are_counted() -> None:
    async def scenario() -> None:
        async with balancing() as network:
            node = network.nodes["B2"]
            await until(lambda: node.control[Offload.name, "$LOCAL_PIE"] > 0)
            found = metrics((await get(application(Observed(node)), "/metrics"))[1])
            name = 'godwit_control_publications_total{class="$LOCAL_PIE",policy="offload"}'
            assert found[name] == node.control[Offload.name, "$LOCAL_PIE"]
            assert found['godwit_balancing_status{status="OK"}'] == 1
            assert found['godwit_balancing_status{status="BUSY"}'] == 0
            for name in ("input", "match", "output"):
                assert found[f'godwit_balancing_bound{{metric="{name}"}}'] >= 0
            assert found["godwit_balancing_obstructed"] == 0

    run_in_virtual_time(scenario())
