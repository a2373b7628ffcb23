"""Rehearsals against what then happens live, on 7 broker processes under load.

    python -m benchmarks.whatif                    # about five minutes
    python -m benchmarks.whatif --only unchanged   # the error on the unchanged network

A tree of broker processes with a coordinator; publishers and subscribers are spread over it.
`godwit whatif` takes a snapshot; its simulation of the unchanged network is compared with what was
measured afterwards: message rate, hops and utilisations within 10%, delay within 25%.  Then three
changes are rehearsed, ranked by the messages that brokers handle, carried out on the running
network one after the other, and measured: a star, a chain, and a leaf broker less.

The exit code is 1 if an error is larger, if the ranking is another one live, or if a delivery was
lost, twice or out of order.  A machine that does other work measures other delays.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from benchmarks.draining import registered
from godwit.api.network_api import (
    BEGIN_CHANGE,
    CHANGE,
    ChangeKind,
    ChangeRequest,
    ChangeState,
    WhichChange,
)
from godwit.cli.whatif_sources import save_snapshot
from godwit.client import connect
from godwit.content.filters import Filter
from godwit.http.http_client import HttpClient
from godwit.overlay.topology import Topology, balanced_tree, chain, star
from godwit.rehearsal.changes_to_try import RehearsedChange
from godwit.rehearsal.network_figures import NetworkFigures, measured_figures, relative
from godwit.rehearsal.network_snapshot import NetworkSnapshot
from godwit.rehearsal.rehearsing import RehearsalReport, rehearse
from godwit.rehearsal.taking_snapshots import SnapshotSource, SnapshotTimes, take_snapshot
from godwit.runtime.processes import Processes
from godwit.runtime.service import Service
from godwit.runtime.settings import Limits, network_of
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

BROKERS = 7
BANDWIDTH_BYTES_S = 100_000.0
PUBLISHERS, SUBSCRIBERS = 6, 48
PER_S = 25.0
TEXT = "x" * 150
PRICES = (20, 50, 100)
WINDOW_S = 5.0
TIMES = SnapshotTimes(sample_s=12.0, windows=4)
SETTLE_S = 120.0
#: Figures and by how much a simulation of them may be off.
BARS = {
    "messages_per_s": 0.10,
    "deliveries_per_s": 0.10,
    "hops": 0.10,
    "input_utilisation": 0.10,
    "output_utilisation": 0.10,
    "load_max": 0.10,
    "delay_mean_s": 0.25,
}
LEAVES = "B7"


@dataclass(slots=True)
class LiveScene:
    """A running network with clients."""

    running: Processes
    oracle: Oracle
    random: Random
    publishers: list[WitnessedClient] = field(default_factory=list)

    def source(self, without: str = "") -> SnapshotSource:
        names = [each.id for each in self.running.network.broker if each.id != without]
        return SnapshotSource(
            http={name: self.running.http(name) for name in names}, has_profiles=False
        )

    async def enter(self, stack: contextlib.AsyncExitStack) -> None:
        names = [each.id for each in self.running.network.broker]
        for number in range(PUBLISHERS):
            each = await self._connect(stack, f"p{number}", self.random.choice(names))
            text = f"class = '{each.name}' and price is a number and text is a string"
            await each.advertise(Filter.parse(text))
            self.publishers.append(each)
        for number in range(SUBSCRIBERS):
            each = await self._connect(stack, f"s{number}", self.random.choice(names))
            below = PRICES[number % len(PRICES)]
            wanted = number % PUBLISHERS
            await each.subscribe(Filter.parse(f"class = 'p{wanted}' and price < {below}"))

    async def _connect(
        self, stack: contextlib.AsyncExitStack, name: str, broker: str
    ) -> WitnessedClient:
        client = connect(self.running.url(broker), name=name)
        return await stack.enter_async_context(WitnessedClient(client, self.oracle))

    @contextlib.asynccontextmanager
    async def publishing(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._publish(each)) for each in self.publishers]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _publish(self, client: WitnessedClient) -> None:
        due_s = time.monotonic() + self.random.random() / PER_S
        while True:
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            due_s += 1.0 / PER_S
            price = self.random.randrange(100)
            await client.publish({"class": client.name, "price": price, "text": TEXT})


async def change(coordinator: str, request: ChangeRequest) -> None:
    """Carry a change out, and wait until it is over."""
    async with HttpClient(coordinator, attempts=10) as caller:
        made = await caller.call(BEGIN_CHANGE, request)
        while not made.is_over:
            await asyncio.sleep(0.3)
            made = await caller.call(CHANGE, WhichChange(made.number))
    if made.state is not ChangeState.DONE:
        raise RuntimeError(f"{request.kind.value}: {made.state.value}: {made.because}")


def reshaped(shape: Topology, brokers: list[str]) -> ChangeRequest:
    return ChangeRequest(kind=ChangeKind.RESHAPE, brokers=brokers, links=sorted(shape.links))


@dataclass(slots=True)
class Outcome:
    report: RehearsalReport
    live: dict[str, NetworkFigures] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


async def measured(source: SnapshotSource) -> NetworkFigures:
    snapshot = await take_snapshot(source, TIMES)
    return measured_figures(snapshot.first)


async def compared(
    scene: LiveScene, coordinator: str, arguments: argparse.Namespace, console: Console
) -> Outcome:
    names = [each.id for each in scene.running.network.broker]
    shapes = {"a star": star(BROKERS - 1), "a chain": chain(BROKERS)}
    changes = [
        *(RehearsedChange(text=n, links=sorted(each.links)) for n, each in shapes.items()),
        RehearsedChange(text=f"without {LEAVES}", without=(LEAVES,)),
    ]
    if arguments.only == "unchanged":
        changes = []
    await asyncio.sleep(2 * WINDOW_S)
    snapshot: NetworkSnapshot = await take_snapshot(scene.source(), TIMES, console.print)
    if arguments.save:
        save_snapshot(snapshot, Path(arguments.save))
    report = await asyncio.to_thread(rehearse, snapshot, changes)
    found = Outcome(report)
    if not changes:
        return found
    for name, shape in shapes.items():
        await change(coordinator, reshaped(shape, names))
        await asyncio.sleep(2 * WINDOW_S)
        found.live[name] = await measured(scene.source())
    await change(coordinator, reshaped(balanced_tree(BROKERS, fanout=2), names))
    await change(coordinator, ChangeRequest(kind=ChangeKind.LEAVE, brokers=[LEAVES]))
    await asyncio.sleep(2 * WINDOW_S)
    found.live[f"without {LEAVES}"] = await measured(scene.source(LEAVES))
    return found


async def run(arguments: argparse.Namespace, console: Console) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="godwit-") as name:
        options = ("--listen", "127.0.0.1:0", "--state", str(Path(name) / "state"))
        async with (
            Service("coordinator", *options, "--report-s", "1") as coordinator,
            HttpClient(coordinator.url, attempts=10) as caller,
        ):
            network = network_of(balanced_tree(BROKERS, fanout=2), http_port=0)
            brokers = [
                msgspec.structs.replace(each, output_bandwidth_bytes_s=BANDWIDTH_BYTES_S)
                for each in network.broker
            ]
            network = msgspec.structs.replace(
                network,
                broker=brokers,
                coordinator=coordinator.url,
                limits=Limits(link_s=60.0, load_window_s=WINDOW_S),
            )
            async with Processes(network) as running:
                await registered(caller, BROKERS)
                scene = LiveScene(running, Oracle(settle_s=SETTLE_S), Random(arguments.seed))
                async with contextlib.AsyncExitStack() as stack:
                    await scene.enter(stack)
                    async with scene.publishing():
                        found = await compared(scene, coordinator.url, arguments, console)
                    publishers = [each.client for each in scene.publishers]
                    await wait_for_deliveries(scene.oracle, *publishers, within_s=SETTLE_S)
                scene.oracle.finish(time.time())
                found.wrong += [str(each) for each in scene.oracle.violations[:5]]
                return found


def judge(found: Outcome, console: Console) -> bool:
    report = found.report
    table = Table("figure", "measured", "simulated", "error", "bar", title="unchanged")
    good = not found.wrong
    for name, bar in BARS.items():
        error = report.error[name]
        good &= error is not None and abs(error) <= bar
        values = [f"{getattr(each, name):.4g}" for each in (report.measured, report.before)]
        table.add_row(name, *values, "-" if error is None else f"{error:+.1%}", f"{bar:.0%}")
    console.print(table)
    if not found.live:
        return good
    table = Table("change", "simulated", "live", "error", "hops", "live", "delay", "live")
    for each in report.outcomes:
        live = found.live[each.change]
        error = relative(each.after.messages_per_s, live.messages_per_s) or 0.0
        table.add_row(
            each.change,
            f"{each.after.messages_per_s:.0f}/s",
            f"{live.messages_per_s:.0f}/s",
            f"{error:+.1%}",
            f"{each.after.hops:.2f}",
            f"{live.hops:.2f}",
            f"{each.after.delay_mean_s * 1e3:.2f} ms",
            f"{live.delay_mean_s * 1e3:.2f} ms",
        )
    console.print(table)
    rehearsed = [each.change for each in report.outcomes]
    happened = sorted(found.live, key=lambda name: found.live[name].messages_per_s)
    is_same = rehearsed == happened
    console.print(f"ranking: rehearsed {', '.join(rehearsed)}; live {', '.join(happened)}")
    return good and is_same


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.whatif", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["unchanged"])
    parser.add_argument("--save", help="file for the snapshot")
    arguments = parser.parse_args()
    console = Console(width=140)
    found = uvloop.run(run(arguments, console))
    for text in found.wrong:
        console.print(f"WRONG: {text}", style="red")
    good = judge(found, console)
    console.print("good" if good else "NOT GOOD")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
