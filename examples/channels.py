"""Channels: one query for many subscribers, each with its own arguments.

    python examples/channels.py    # needs the extra `datacluster`; Spark starts in half a minute

Two brokers and a data cluster on this machine.  A thermometer publishes readings at one broker, a
feed stores them in a dataset, and a channel finds those that are too warm.  Alice is a client that
moves to another broker in between; the display in the hall uses HTTP.
"""

from __future__ import annotations

import asyncio
import tempfile
from typing import Any

import httpx
import msgspec

import godwit
from godwit.runtime import (
    LocalDeployment,
    NetworkSettings,
    ServiceSettings,
    chain,
    network_of,
)

READINGS = "class = 'READING' and room is a string and celsius is a number"
STATEMENTS = (
    "CREATE DATASET Readings (room STRING, celsius DOUBLE)",
    f'CREATE FEED readings FROM FILTER "{READINGS}" INTO Readings',
    """CREATE CHANNEL TooWarm(room STRING, above DOUBLE) CONTINUOUS AS
       SELECT room, celsius FROM NEW Readings WHERE room = :room AND celsius > :above""",
)


def network(folder: str) -> NetworkSettings:
    """The settings of a network file for `godwit up`, on any free ports."""
    services = ServiceSettings(
        datacluster={"listen": "127.0.0.1:0", "folder": folder, "master": "local[2]"}
    )
    return msgspec.structs.replace(network_of(chain(2), http_port=0), services=services)


async def post(url: str, **request: object) -> Any:
    """A request that a program in any language can send."""
    async with httpx.AsyncClient(timeout=120) as http:
        response = await http.post(url, json=request)
        response.raise_for_status()
        return response.json()


async def follow(network: LocalDeployment) -> None:
    brokers = network.brokers
    async with (
        godwit.connect(brokers.url("B1"), name="alice") as alice,
        godwit.connect(brokers.url("B2"), name="thermometer") as thermometer,
        alice.subscribe_channel("TooWarm", room="kitchen", above=24) as events,
    ):
        await events.in_effect()
        hall = brokers.http("B2")
        session = (await post(f"{hall}/login", user="hall"))["session"]
        arguments = {"room": "kitchen", "above": 26}
        await post(f"{hall}/subscribe", session=session, channel="TooWarm", arguments=arguments)

        await thermometer.advertise(READINGS)
        for celsius in (21.5, 24.5):
            await thermometer.publish({"class": "READING", "room": "kitchen", "celsius": celsius})
        print("alice received", (await anext(events)).content)

        await alice.move(brokers.url("B2"))
        await thermometer.publish({"class": "READING", "room": "kitchen", "celsius": 27.0})
        print("alice, at another broker, received", (await anext(events)).content)

        answer = await post(f"{hall}/results", session=session, wait_s=60)
        print("the hall shows", [row for part in answer["results"] for row in part["rows"]])
        await post(f"{hall}/logout", session=session)


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with LocalDeployment(network(folder)) as running:
            for text in STATEMENTS:
                await post(f"{running.services['datacluster'].url}/statement", text=text)
            await follow(running)


if __name__ == "__main__":
    asyncio.run(main())
