"""Brokers join clusters and leave them while clients publish: by epochs, without loss."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.asynchronous import run
from tests.live.changing import ChangingNetwork, changing

from godwit.api.network_api import ChangeKind, ChangeState
from godwit.http.errors import RestError
from godwit.overlay.topology import chain
from godwit.runtime.settings import BrokerSettings, NetworkSettings, network_of

BROKERS = ("B1", "B2", "B3", "B4")


def in_clusters(settings: NetworkSettings) -> NetworkSettings:
    network = network_of(chain(4), clusters=2, http_port=0)
    return msgspec.structs.replace(
        network, coordinator=settings.coordinator, limits=settings.limits
    )


async def neighbours(network: ChangingNetwork, broker: str) -> list[str]:
    links = (await network.account(broker)).links
    return sorted(link.neighbour for link in links if link.status == "up")


def test_a_broker_joins_clusters_and_others_leave_them(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with changing(tmp_path, chain(4), change_settings=in_clusters) as network:
            for broker in BROKERS:
                await network.publisher(broker)
                await network.subscribers(2, broker)
            async with network.publishing():
                with pytest.raises(RestError, match="there is a broker B2 already"):
                    await network.begin(ChangeKind.JOIN, "B2", link="B1")
                joining = await network.begin(ChangeKind.JOIN, "B5", link="B1")
                await network.running.join(BrokerSettings(id="B5", http="127.0.0.1:0"))
                joined = await network.ended(joining)
                assert joined.state is ChangeState.DONE, joined
                assert await neighbours(network, "B5") == ["B2", "B4"]
                assert await neighbours(network, "B1") == ["B2", "B3", "B4"]

                left = await network.carry_out(ChangeKind.LEAVE, "B2")
                assert left.state is ChangeState.DONE, left
                assert await neighbours(network, "B5") == ["B3", "B4"]
                head = await network.carry_out(ChangeKind.LEAVE, "B1")
                assert head.state is ChangeState.DONE, head
                assert network.at("B1") == network.at("B2") == []
                assert await neighbours(network, "B5") == ["B3", "B4"]

                # Its file has the clusters of the start.
                back = await network.carry_out(ChangeKind.RESTART, "B4")
                assert back.state is ChangeState.DONE, back
                assert await neighbours(network, "B4") == ["B3", "B5"]
                # Clients move: the answers of those that have left are not waited for.
                moved = await network.carry_out(ChangeKind.DRAIN, "B3", to=["B5"])
                assert moved.state is ChangeState.DONE, moved
                assert {b.broker for b in (await network.view()).brokers} == {"B3", "B4", "B5"}
            assert not any(each.client.gaps.seen for each in network.clients)

    run(scenario(), within_s=240.0)
