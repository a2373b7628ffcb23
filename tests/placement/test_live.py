"""The same modules in live brokers: letters on real links, marks on real frames, decisions logged.

What a client makes of the advice to move is not here: these are dry runs.
"""

from __future__ import annotations

import logging

import pytest
from tests.asynchronous import run, until
from tests.network.scenes import publish, publishing, subscribed

from godwit import placement
from godwit.overlay.topology import chain
from godwit.placement.settings import GrapeSettings, Metric, PopSettings
from godwit.testing import MemoryNetwork

POLICIES: dict[str, PopSettings | GrapeSettings] = {
    "pop": PopSettings(traces_per_decision=10, traces_per_window=10**9, dry_run=True),
    "grape": GrapeSettings(publications_per_session=10, dry_run=True),
    "grape by delay": GrapeSettings(
        publications_per_session=10, primary=Metric.DELAY, dry_run=True
    ),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_dry_run_in_live_brokers(policy: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        modules = placement.modules(POLICIES[policy])
        async with (
            MemoryNetwork(chain(3), modules=modules) as network,
            publishing(network, "B1", "paul") as paul,
            subscribed(network, "B3", "alice"),
        ):
            node = network.nodes["B1"]
            # GRAPE publishes ten; POP may have to publish one or two more.
            await publish(paul, range(12))
            await until(lambda: bool(node.decisions))
            assert node.decisions == {(policy.split(maxsplit=1)[0], "proposed"): 1}
            handled = network.nodes["B3"].handled
            assert handled["Letter"] == (1 if policy != "pop" else handled["Letter"])

    caplog.set_level(logging.INFO, logger="godwit.node")
    run(scenario())
    (record,) = (r for r in caplog.records if r.getMessage() == "decided")
    assert (record.subject, record.source, record.target) == ("paul", "B1", "B3")  # type: ignore[attr-defined]
