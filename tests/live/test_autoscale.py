"""A coordinator that finds out by itself that fewer brokers will do, under load."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.asynchronous import run
from tests.live.changing import changing
from tests.live.watching import until

from godwit.overlay.topology import star
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.runtime.settings import NetworkSettings

SETTINGS = """
moves_per_s = 50.0

[autoscale]
fewest = 2
every_s = 2.0
hold_s = 3.0
"""


def with_profiles(settings: NetworkSettings) -> NetworkSettings:
    return msgspec.structs.replace(settings, profiling=ProfilingSettings(vector_length=128))


def test_brokers_that_are_not_needed_stop_by_themselves(tmp_path: Path) -> None:
    file = tmp_path / "coordinator.toml"
    file.write_text(SETTINGS)

    async def scenario() -> None:
        options = ("--config", str(file))
        async with changing(tmp_path, star(2), *options, change_settings=with_profiles) as network:
            await network.publisher("B1")
            for broker in ("B2", "B3"):
                await network.subscribers(2, broker)

            async def are_two() -> bool:
                view = await network.view()
                return len(view.brokers) == 2 and view.change is None

            async with network.publishing():
                await until(are_two, within_s=90.0)
            (change,) = (await network.changes()).changes
            assert change.request.asked_by == "autoscale"
            assert change.request.reason == "33% of 3 brokers can be saved"

    run(scenario(), within_s=150.0)
