"""The same modules in live brokers: letters on real links, marks on real frames, real moves."""

from __future__ import annotations

import logging

import pytest
from msgspec.structs import replace
from tests.asynchronous import run, until
from tests.runtime.scenes import numbers, publish, publishing, subscribed

from godwit.broker.stimuli import LocalClient
from godwit.overlay.topology import chain
from godwit.policies import placement
from godwit.policies.placement.settings import GrapeSettings, Metric, PopSettings
from godwit.testing.memory_network import MemoryNetwork

POLICIES: dict[str, PopSettings | GrapeSettings] = {
    "pop": PopSettings(traces_per_decision=10, traces_per_window=10**9),
    "grape": GrapeSettings(publications_per_session=10),
    "grape by delay": GrapeSettings(publications_per_session=10, primary=Metric.DELAY),
}
every_policy = pytest.mark.parametrize("policy", POLICIES)


@every_policy
def test_a_dry_run(policy: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        modules = placement.modules(replace(POLICIES[policy], dry_run=True))
        async with (
            MemoryNetwork(chain(3), modules=modules) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice"),
        ):
            node = network.nodes["B1"]
            await publish(paul, range(12))
            await until(lambda: bool(node.decisions))
            assert node.decisions == {(policy.split(maxsplit=1)[0], "proposed"): 1}
            if policy != "pop":
                assert network.nodes["B3"].handled["Letter"] == 1, "one question"

    caplog.set_level(logging.INFO, logger="godwit.node")
    run(scenario())
    (record,) = (r for r in caplog.records if r.getMessage() == "decided")
    assert (record.subject, record.source, record.target) == ("paul", "B1", "B3")  # type: ignore[attr-defined]


@every_policy
def test_a_live_publisher_moves_to_its_subscribers_and_nothing_is_lost(policy: str) -> None:
    async def scenario() -> None:
        modules = placement.modules(POLICIES[policy])
        async with (
            MemoryNetwork(chain(3), modules=modules) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice") as (_, events),
        ):
            moved = network.nodes["B3"].broker.sessions
            published = 0
            while not moved.holds(LocalClient("paul")):
                await publish(paul, range(published, published + 5))
                published += 5
            await publish(paul, range(published, published + 20))

            assert await numbers(events, published + 20) == list(range(published + 20))
            hops = network.nodes["B1"].handled["Publication"]
            assert hops < published + 20, "the last ones did not pass B1"
            assert not network.nodes["B1"].broker.sessions.holds(LocalClient("paul"))

    run(scenario())
