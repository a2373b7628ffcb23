"""`clusters = "auto"`: a coordinator that changes the number of clusters by itself, under load."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.asynchronous import run
from tests.live.changing import changing
from tests.live.watching import until

from godwit.overlay.topology import chain
from godwit.runtime.settings import NetworkSettings, network_of

SETTINGS = """
[clusters]
every_s = 0.5
hold_s = 3.0
"""


def in_clusters(settings: NetworkSettings) -> NetworkSettings:
    network = network_of(chain(4), clusters="auto", http_port=0)
    return msgspec.structs.replace(
        network, coordinator=settings.coordinator, limits=settings.limits
    )


def test_the_number_of_clusters_follows_the_load(tmp_path: Path) -> None:
    """Few subscriptions that interest few brokers: a single cluster sends the fewest copies."""
    file = tmp_path / "coordinator.toml"
    file.write_text(SETTINGS)

    async def scenario() -> None:
        options = ("--config", str(file))
        async with changing(tmp_path, chain(4), *options, change_settings=in_clusters) as network:
            for broker in ("B1", "B2", "B3", "B4"):
                await network.publisher(broker)
            await network.subscribers(2, "B1")
            account = await network.account("B4")
            assert account.clusters is not None
            assert account.clusters.clusters == 2, "at the start as many as brokers in each"
            async with network.publishing():

                async def is_one() -> bool:
                    counted = [(await network.account(f"B{n}")).clusters for n in range(1, 5)]
                    has_one = all(each is not None and each.clusters == 1 for each in counted)
                    return has_one and (await network.view()).change is None

                await until(is_one, within_s=60.0)
            (change,) = (await network.changes()).changes
            assert change.request.asked_by == "clusters"
            assert change.request.reason.startswith("1 cluster instead of 2 save")

    run(scenario(), within_s=120.0)
