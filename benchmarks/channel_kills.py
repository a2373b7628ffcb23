"""Channels while processes are killed: every record reaches every subscriber once.

    python -m benchmarks.channel_kills                # the data cluster and brokers, 5 times each
    python -m benchmarks.channel_kills --cluster-kills 0 --broker-kills 0 --java-kills 20
    python -m benchmarks.channel_kills --cluster-kills 0 --broker-kills 0 --take-overs 10

Two broker processes and a data cluster.  A publisher at one broker numbers its records; they are
fed into a dataset, and subscribers at both brokers subscribe to a continuous channel for some of
them.  The data cluster, Spark's driver included, or a broker is killed with SIGKILL at random
moments and restarted; or Spark's Java process alone, which the data cluster starts again.  With
take-overs there is a standby: the data cluster is killed, or stopped with SIGSTOP and woken when
the standby has taken its place, and comes back as the next standby.  At the
end each subscriber must have received each of its records once, and in the order of publishing from
execution to execution.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import msgspec
import uvloop
from rich.console import Console

from godwit.api import datacluster_api as api
from godwit.client import Client, connect
from godwit.datacluster.server import DISPLACED
from godwit.http.http_client import HttpClient
from godwit.overlay.topology import chain
from godwit.runtime.processes import Processes, free_port
from godwit.runtime.service import Service
from godwit.runtime.settings import network_of
from godwit.testing.nemesis.channel_readers import (
    ADVERTISED,
    CHANNEL,
    DATASET,
    FEED,
    KINDS,
    ChannelReader,
)

PER_S = 200.0
#: Between kills, after the last victim has restarted.
PAUSE_S = (1.0, 4.0)
SETTLE_S = 300.0
#: So that two of them fit into a small machine.
SETTINGS = "memory_mib = 1024\n"
#: A standby answers when it is needed, which may be never.
STANDBY_S = 3_600.0


@dataclass(slots=True)
class Outcome:
    published: int = 0
    delivered: int = 0
    kills: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    take_overs_s: list[float] = field(default_factory=list)
    took_s: float = 0.0


async def run(
    *,
    cluster_kills: int,
    broker_kills: int,
    java_kills: int = 0,
    take_overs: int = 0,
    seed: int,
    console: Console,
) -> Outcome:
    outcome, start_s = Outcome(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="godwit-") as folder:
        listens = [f"127.0.0.1:{free_port()}" for _ in range(2 if take_overs else 1)]
        urls = ",".join(f"http://{listen}" for listen in listens)
        network = msgspec.structs.replace(network_of(chain(2)), datacluster=urls)
        config = settings_file(folder)
        async with Processes(network) as brokers:
            shared = ["--folder", f"{folder}/data", "--config", config]
            shared += ["--broker", brokers.url("B1")]
            if take_overs:  # The first one need not wait.
                shared += ["--standby"]
            services = [
                Service("datacluster", "--listen", listen, *shared, ready_s=STANDBY_S)
                for listen in listens
            ]
            async with contextlib.AsyncExitStack() as stack:
                for service in services:
                    stack.push_async_callback(service.stop)
                await services[0].start()
                scene = Scene(brokers, services, Random(seed), outcome, console)
                await scene.play(cluster_kills, broker_kills, java_kills, take_overs)
    outcome.took_s = time.monotonic() - start_s
    return outcome


def settings_file(folder: str) -> str:
    path = Path(folder, "settings.toml")
    path.write_text(SETTINGS)
    return str(path)


@dataclass(slots=True)
class Scene:
    brokers: Processes
    services: list[Service]
    """The data cluster that works, and its standby if there is one."""

    random: Random
    outcome: Outcome
    console: Console
    standing_by: asyncio.Task[None] | None = None

    @property
    def cluster(self) -> Service:
        return self.services[0]

    async def play(
        self, cluster_kills: int, broker_kills: int, java_kills: int, take_overs: int
    ) -> None:
        self._stand_by()
        async with HttpClient(self.cluster.url, answer_s=120.0) as caller:
            for text in (DATASET, FEED, CHANNEL):
                await caller.call(api.STATEMENT, api.Statement(text))
        victims = ["data cluster"] * cluster_kills
        victims += ["Java"] * java_kills
        victims += ["data cluster, taken over"] * take_overs
        victims += [self.random.choice(["B1", "B2"]) for _ in range(broker_kills)]
        self.random.shuffle(victims)
        async with contextlib.AsyncExitStack() as stack:
            readers = [await self._reader(stack, kind) for kind in range(KINDS)]
            publisher = await stack.enter_async_context(connect(self.brokers.url("B2")))
            await publisher.advertise(ADVERTISED)
            is_over = asyncio.Event()
            publishing = asyncio.create_task(self._publish(publisher, is_over))
            for victim in victims:
                await asyncio.sleep(self.random.uniform(*PAUSE_S))
                await self._kill(victim)
            await asyncio.sleep(PAUSE_S[1])
            is_over.set()
            await publishing
            await self._settle(readers)
        if self.standing_by is not None:
            self.standing_by.cancel()
            await asyncio.gather(self.standing_by, return_exceptions=True)

    async def _reader(self, stack: contextlib.AsyncExitStack, kind: int) -> ChannelReader:
        url = self.brokers.url(f"B{kind % 2 + 1}")
        client = await stack.enter_async_context(connect(url, name=f"reader-{kind}"))
        events = await stack.enter_async_context(client.subscribe_channel("OfKind", wanted=kind))
        await events.in_effect()
        reader = ChannelReader(kind, events)
        task = asyncio.create_task(reader.read())
        stack.callback(task.cancel)
        return reader

    async def _publish(self, publisher: Client, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            n = self.outcome.published
            await publisher.publish({"class": "N", "n": n, "kind": n % KINDS, "text": f"text {n}"})
            self.outcome.published += 1
            await asyncio.sleep(1 / PER_S)
        await publisher.flush()

    async def _kill(self, victim: str) -> None:
        self.console.print(f"kill -9 {victim} after {self.outcome.published} records", style="dim")
        self.outcome.kills.append(victim)
        if victim == "data cluster":
            await self.cluster.kill()
            await self.cluster.start()
        elif victim == "data cluster, taken over":
            await self._take_over(sleeps=self.random.random() < 0.5)
        elif victim == "Java":
            before = java_of(self.cluster.pid)
            assert before is not None, "it is started again before the next kill"
            os.kill(before, signal.SIGKILL)
            while java_of(self.cluster.pid) in (before, None):  # noqa: ASYNC110  No event tells.
                await asyncio.sleep(0.2)
        else:
            await self.brokers.kill(victim)
            await self.brokers.start(victim)

    def _stand_by(self) -> None:
        if len(self.services) > 1:
            self.standing_by = asyncio.create_task(self.services[1].start())

    async def _take_over(self, *, sleeps: bool) -> None:
        """The standby works; the other one, killed or woken too late, is the next standby."""
        assert self.standing_by is not None, "there is a standby"
        old = self.cluster
        pid, begun_s = old.pid, time.monotonic()
        if sleeps:
            os.kill(pid, signal.SIGSTOP)
        else:
            await old.kill()
        await self.standing_by
        self.outcome.take_overs_s.append(time.monotonic() - begun_s)
        if sleeps:
            os.kill(pid, signal.SIGCONT)
            if (code := await old.wait()) != DISPLACED:
                self.outcome.faults.append(f"a process that was displaced ended with {code}")
        self.services.reverse()
        self._stand_by()

    async def _settle(self, readers: Sequence[ChannelReader]) -> None:
        deadline_s = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline_s:
            if sum(len(reader.received) for reader in readers) >= self.outcome.published:
                break
            await asyncio.sleep(0.2)
        await asyncio.sleep(2.0)  # Duplicates may be late.
        self.outcome.delivered = sum(len(reader.received) for reader in readers)
        for reader in readers:
            self.outcome.faults += reader.faults(self.outcome.published)


def java_of(process: int) -> int | None:
    """Spark's Java process, a child of the data cluster's; None while there is none."""
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            with contextlib.suppress(FileNotFoundError):
                if Path(f"/proc/{child}/comm").read_text().strip() == "java":
                    return child
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster-kills", type=int, default=5)
    parser.add_argument("--broker-kills", type=int, default=5)
    parser.add_argument("--java-kills", type=int, default=0)
    parser.add_argument("--take-overs", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    console = Console()
    outcome = uvloop.run(
        run(
            cluster_kills=given.cluster_kills,
            broker_kills=given.broker_kills,
            java_kills=given.java_kills,
            take_overs=given.take_overs,
            seed=given.seed,
            console=console,
        )
    )
    console.print(
        f"{len(outcome.kills)} kills, {outcome.published:,} records published, "
        f"{outcome.delivered:,} rows delivered in {outcome.took_s:.0f} s; "
        f"{len(outcome.faults)} faults"
    )
    if outcome.take_overs_s:
        took = ", ".join(f"{took_s:.1f}" for took_s in sorted(outcome.take_overs_s))
        console.print(f"the standby answered after {took} s")
    for fault in outcome.faults:
        console.print(fault, style="red")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
