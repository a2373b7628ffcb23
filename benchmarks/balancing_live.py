"""Broker processes that balance their load: a star of unequal edge brokers, every delivery checked.

    python -m benchmarks.balancing_live [--rounds 10]

One cluster-head and four edge brokers whose outputs are limited, each to another bandwidth.  All
subscribers join one edge broker while a publisher at the head publishes steadily: it is overloaded,
and the others are idle.  The brokers balance, with short periods; then half of what is published
comes twice as often, and they balance again.  In each further round all subscribers of an edge
broker go elsewhere by hand, and an edge broker is killed with SIGKILL in the middle of the session
that follows, as its offloader or its acceptor, and restarted.

The table has the output utilisation of each edge broker, by their own meters, and how many
subscribers it has.  The exit code is 1 if a delivery was lost, came twice or out of order, or if
loads have not come within the trigger threshold in time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Self

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from godwit.api.balancing_api import BALANCING, BalancingAccount
from godwit.api.broker_api import MOVE, MoveRequest
from godwit.client import connect
from godwit.content.filters import Filter
from godwit.errors import GodwitError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.overlay.topology import star
from godwit.policies.offload.settings import BalancingSettings
from godwit.runtime.processes import Processes
from godwit.runtime.settings import Limits, NetworkSettings, TraceSettings, network_of
from godwit.simulation.oracle import Oracle
from godwit.testing.witness import WitnessedClient, wait_for_deliveries

HEAD = "B1"
#: Where all subscribers join.
FIRST = "B2"
#: Bytes per second.  Together three times what is delivered before the step.
BANDWIDTHS = {"B2": 80_000.0, "B3": 40_000.0, "B4": 60_000.0, "B5": 120_000.0}
SUBSCRIBERS = 48
#: Publications in a second, of so many kinds in turn.  A subscriber wants one kind, or two.
PER_S = 48.0
KINDS = tuple(range(12))
#: After the step those of half of the kinds come twice as often.
KINDS_AFTER = (*KINDS, *KINDS[:6])
PAYLOAD_BYTES = 240
ADVERTISED = Filter.parse("class = 'LOAD' and kind is a number")
#: Times are about a twentieth of the thesis's.
SETTINGS = BalancingSettings(
    hold_s=2.0,
    local_pie_period_s=1.0,
    global_pie_period_s=2.0,
    stabilize_s=1.5,
    local_detection_min_s=1.5,
    local_detection_max_s=3.0,
    global_detection_min_s=3.0,
    global_detection_max_s=4.0,
    reply_timeout_s=2.0,
    session_margin_s=5.0,
    press_samples=48,
    press_timeout_s=4.0,
)
LIMITS = Limits(load_window_s=0.5, heartbeat_s=0.5)
BALANCE_S = 90.0
#: Longer than any delivery takes, also through an overloaded broker and to one that was killed.
SETTLE_S = 120.0
POLL_S = 0.1
#: Loads are within the trigger so many times in a row, a window apart.
STEADY_POLLS = 6


def live_network(
    settings: BalancingSettings = SETTINGS,
    bandwidths: dict[str, float] | None = None,
    *,
    trace: str | None = None,
) -> NetworkSettings:
    """A head and an edge broker for each bandwidth; all serve HTTP."""
    edges = bandwidths or BANDWIDTHS
    network = network_of(star(len(edges)), http_port=0)
    brokers = [
        msgspec.structs.replace(
            broker, output_bandwidth_bytes_s=edges[broker.id], limit_output=True
        )
        if broker.id in edges
        else broker
        for broker in network.broker
    ]
    return msgspec.structs.replace(
        network,
        broker=brokers,
        limits=LIMITS,
        balancing=settings,
        trace=TraceSettings(folder=trace, gauges_every_s=0.5),
    )


@dataclass(slots=True)
class LiveStar:
    """Running brokers with subscribers and one publisher; `async with live_star()` makes one."""

    running: Processes
    oracle: Oracle
    stack: contextlib.AsyncExitStack
    callers: dict[str, HttpClient] = field(default_factory=dict)
    subscribers: list[WitnessedClient] = field(default_factory=list)
    kinds: tuple[int, ...] = KINDS
    """Kinds of publications that follow each other, again and again, each so often in a second."""

    rounds_per_s: float = PER_S / len(KINDS)
    _publisher: WitnessedClient | None = None
    _publishing: asyncio.Task[None] | None = None

    # -- clients -------------------------------------------------------------------------------

    async def join(self, at: str, count: int = SUBSCRIBERS) -> None:
        """Let subscribers join one broker, one after the other."""
        for _ in range(count):
            number = len(self.subscribers)
            name = f"s{number:02d}"
            client = WitnessedClient(connect(self.running.url(at), name=name), self.oracle)
            await self.stack.enter_async_context(client)
            self.subscribers.append(client)
            kind = number % len(KINDS)
            wanted = f"kind = {kind}" if number % 2 else f"kind >= {kind} and kind <= {kind + 1}"
            await client.subscribe(Filter.parse(f"class = 'LOAD' and {wanted}"))

    async def publish(self) -> None:
        """Begin to publish at the head, in the background."""
        client = WitnessedClient(connect(self.running.url(HEAD), name="paul"), self.oracle)
        self._publisher = await self.stack.enter_async_context(client)
        await client.advertise(ADVERTISED)
        self._publishing = asyncio.create_task(self._publish_steadily(client))
        self.stack.push_async_callback(_cancelled, self._publishing)

    async def _publish_steadily(self, client: WitnessedClient) -> None:
        due_s = time.monotonic()
        while True:
            for kind in self.kinds:
                await client.publish({"class": "LOAD", "kind": kind}, payload=bytes(PAYLOAD_BYTES))
                due_s += 1 / (self.rounds_per_s * len(self.kinds))
                due_s = max(due_s, time.monotonic() - 1.0)
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))

    @property
    def homes(self) -> Counter[str]:
        """Subscribers by broker."""
        return Counter(client.client.session.broker for client in self.subscribers)

    # -- brokers -------------------------------------------------------------------------------

    @property
    def edges(self) -> list[str]:
        return [broker.id for broker in self.running.network.broker if broker.id != HEAD]

    def caller(self, broker: str) -> HttpClient:
        url = self.running.http(broker)
        known = self.callers.get(broker)
        if known is None or known.url != url:
            known = self.callers[broker] = HttpClient(url, answer_s=5.0, attempts=1)
            self.stack.push_async_callback(known.close)
        return known

    async def account(self, broker: str) -> BalancingAccount | None:
        """What a broker says of itself; None while it does not answer."""
        with contextlib.suppress(GodwitError):
            return await self.caller(broker).call(BALANCING, Nothing())
        return None

    async def accounts(self) -> dict[str, BalancingAccount]:
        found = await asyncio.gather(*map(self.account, self.edges))
        return {edge: each for edge, each in zip(self.edges, found, strict=True) if each}

    async def outputs(self) -> dict[str, float]:
        """Or of each edge broker that answers."""
        return {
            edge: account.load.output or 0.0
            for edge, account in (await self.accounts()).items()
            if account.load is not None
        }

    async def in_session(self, phases: tuple[str, ...], *, within_s: float = BALANCE_S) -> str:
        """Wait until a broker is in one of these phases of a session; which one it is."""
        found: list[str] = []

        async def is_there() -> bool:
            accounts = (await self.accounts()).values()
            found[:] = [a.broker for a in accounts if a.session and a.session.phase in phases]
            return bool(found)

        await until(is_there, within_s=within_s)
        return found[0]

    async def balanced(self, *, within_s: float = BALANCE_S) -> dict[str, float]:
        """Wait until no session goes on and loads have been within the trigger for a while."""
        settings = self.running.network.balancing
        assert settings is not None
        last: list[dict[str, float]] = []

        async def is_balanced() -> bool:
            accounts = await self.accounts()
            outputs = {
                edge: account.load.output or 0.0
                for edge, account in accounts.items()
                if account.load is not None and account.session is None
            }
            spread = max(outputs.values(), default=0.0) - min(outputs.values(), default=0.0)
            is_good = len(outputs) == len(self.edges) and spread <= settings.local_ratio_trigger
            last[:] = [*last, outputs] if is_good else []
            return len(last) >= STEADY_POLLS

        try:
            await until(is_balanced, within_s=within_s, every_s=LIMITS.load_window_s)
        except TimeoutError:
            loads = {edge: round(value, 3) for edge, value in (await self.outputs()).items()}
            raise AssertionError(
                f"not balanced after {within_s:g} s: {loads}, {self.homes}"
            ) from None
        return last[-1]

    async def empty(self, broker: str, to: str) -> None:
        """Send all subscribers of a broker to another one, by hand."""
        names = [c.name for c in self.subscribers if c.client.session.broker == broker]
        if names:
            request = MoveRequest(address=self.running.url(to), clients=names)
            await self.caller(broker).call(MOVE, request, answer_s=BALANCE_S)

    async def kill(self, broker: str) -> None:
        """End a broker as a crash would, and start it again."""
        await self.running.kill(broker)
        await self.running.restart(broker)

    async def check(self) -> None:
        """Stop publishing, and wait for every delivery; AssertionError if one is not right."""
        assert self._publisher is not None
        assert self._publishing is not None
        await _cancelled(self._publishing)
        await wait_for_deliveries(self.oracle, self._publisher.client, within_s=SETTLE_S)
        self.oracle.finish(time.time())
        assert self.oracle.is_satisfied, "\n".join(map(str, self.oracle.violations[:20]))


async def until(
    holds: Callable[[], Awaitable[bool]], *, within_s: float, every_s: float = POLL_S
) -> None:
    async with asyncio.timeout(within_s):
        while not await holds():  # noqa: ASYNC110  It happens in other processes.
            await asyncio.sleep(every_s)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@contextlib.asynccontextmanager
async def live_star(
    network: NetworkSettings, *, log_level: str = "error"
) -> AsyncIterator[LiveStar]:
    async with (
        Processes(network, log_level=log_level) as running,
        contextlib.AsyncExitStack() as stack,
    ):
        yield LiveStar(running, Oracle(settle_s=SETTLE_S), stack)


# -- the command -------------------------------------------------------------------------------


class Report:
    """Prints a line for each state of the network."""

    def __init__(self, star: LiveStar, console: Console) -> None:
        self._star = star
        self._console = console
        self._start_s = time.monotonic()
        self.table = Table("after s", "what", *star.edges, "difference", box=None)

    async def note(self, what: str) -> Self:
        outputs, homes = await self._star.outputs(), self._star.homes
        spread = max(outputs.values(), default=0.0) - min(outputs.values(), default=0.0)
        loads = [
            f"{outputs[edge]:.2f} ({homes[edge]})" if edge in outputs else "down"
            for edge in self._star.edges
        ]
        after_s = time.monotonic() - self._start_s
        self.table.add_row(f"{after_s:.0f}", what, *loads, f"{spread:.2f}")
        self._console.print(f"{after_s:.0f} s: {what}: {' '.join(loads)}")
        return self


async def play(rounds: int, console: Console) -> bool:
    async with live_star(live_network()) as star:
        report = Report(star, console)
        await star.publish()
        await star.join(FIRST)
        await star.in_session(("sampling",))
        await report.note(f"all have joined {FIRST}")
        await star.balanced()
        await report.note("balanced")
        star.kinds = KINDS_AFTER
        await report.note("half of what is published comes twice as often")
        await star.balanced()
        await report.note("balanced after the step of +50%")
        for number in range(rounds):
            side = ("sampling", "migrating") if number % 2 else ("accepted", "receiving")
            source, target = star.edges[number % 4], star.edges[(number + 1) % 4]
            await star.empty(source, target)
            await report.note(f"round {number + 1}: {source} was emptied into {target}")
            victim = await star.in_session(side)
            await star.kill(victim)
            await report.note(f"{victim} was killed while {' or '.join(side)}, and is back")
            await star.balanced()
            await report.note("balanced")
        await star.check()
        console.print(report.table)
        oracle = star.oracle
        console.print(
            f"{oracle.publications} publications, {oracle.deliveries} deliveries:"
            f" {oracle.violation_count} lost, twice or out of order; {rounds} kills"
        )
        return oracle.is_satisfied


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="edge brokers that are killed")
    arguments = parser.parse_args()
    return 0 if uvloop.run(play(arguments.rounds, Console(width=120))) else 1


if __name__ == "__main__":
    sys.exit(main())
