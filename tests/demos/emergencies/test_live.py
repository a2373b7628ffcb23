"""The emergency scenario, live and small: every row that was delivered is checked."""

from __future__ import annotations

import asyncio

from rich.console import Console

from godwit.api.coordinator_api import Outcome
from godwit.demos.emergencies.emergencies_demo import demonstrate, render
from godwit.demos.emergencies.scenario import EmergencyScenario


def test_everybody_is_told_what_a_batch_query_says() -> None:
    scenario = EmergencyScenario(
        users=16, brokers=3, pace=60.0, seconds=8.0, reports_per_s=10.0, alpha=0.05
    )
    console = Console(quiet=True)

    async def within_time() -> None:
        async with asyncio.timeout(500):
            played, verdict = await demonstrate(console, scenario)
        assert verdict.faults == []
        assert verdict.rows == played.deliveries > 0
        assert played.moves.get("moved", 0) > 0  # Most are nearest one of the brokers.
        moved = [move for move in played.last_moves if move.outcome is Outcome.MOVED]
        assert len(moved) == played.moves["moved"]
        assert all((move.ended_s or 0) > played.started_s for move in moved)
        assert {len(sample.brokers) for sample in played.samples[-5:]} == {3}
        assert all(dataset.rows == 0 for dataset in played.datasets if "quarantine" in dataset.name)
        render(console, played, verdict)

    asyncio.run(within_time())
