"""Broker processes with one link too many: it is refused, and everything else goes on."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator

from tests.asynchronous import run, until

import godwit
from godwit.runtime.processes import ANSWERS, LISTENS, ended, free_port

NUMBERS = "x is a number"
CYCLE = re.compile(r"a link from \w+ to \w+ would close a cycle: they are linked by ([\w -]+);")


class BrokerProcess:
    """`godwit broker` with links by address, as one starts it by hand."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.url = f"godwit://127.0.0.1:{free_port()}"
        self.http = ""
        self.errors: list[str] = []

    async def start(self, *links: str) -> None:
        options = [option for link in links for option in ("--link", link)]
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "godwit", "broker", "--leash", "--id", self.name,
            "--listen", self.url.removeprefix("godwit://"), "--http", "127.0.0.1:0", *options,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self.process.stdout is not None
        said = (await self.process.stdout.readline()).decode()
        assert LISTENS in said
        said = (await self.process.stdout.readline()).decode()
        assert ANSWERS in said
        self.http = said.split()[-1]
        self._reading = asyncio.create_task(self._read_errors())

    async def _read_errors(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.errors.append(line.decode())

    @property
    def ways(self) -> list[str]:
        """Of the links that were refused, as the log says it."""
        return [
            found[1]
            for line in self.errors
            if " warning " in line and (found := CYCLE.search(line))
        ]

    async def health(self) -> str:
        host, port = self.http.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /healthz HTTP/1.0\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
        return text

    async def stop(self) -> None:
        self.process.terminate()
        await ended(self.process)
        self._reading.cancel()


@contextlib.asynccontextmanager
async def brokers(*names: str) -> AsyncIterator[list[BrokerProcess]]:
    all_of_them = [BrokerProcess(name) for name in names]
    try:
        yield all_of_them
    finally:
        for each in all_of_them:
            if hasattr(each, "process"):
                await each.stop()


async def check_use(first: BrokerProcess, last: BrokerProcess) -> None:
    async with (
        godwit.connect(first.url) as paul,
        godwit.connect(last.url) as alice,
        alice.subscribe(NUMBERS) as events,
    ):
        await events.in_effect()
        await paul.advertise(NUMBERS)
        for x in range(100):
            await paul.publish({"x": x})
        await paul.flush()
        assert [(await anext(events)).content["x"] for _ in range(100)] == [*range(100)]


def test_one_link_too_many_is_refused_and_everything_else_works() -> None:
    async def scenario() -> None:
        async with brokers("B1", "B2", "B3") as (b1, b2, b3):
            await b1.start()
            await b2.start(b1.url)
            await b3.start(b2.url, b1.url)
            await until(lambda: bool(b3.ways))
            assert b3.ways in (["B3 - B2 - B1"], ["B3 - B1 - B2"])
            health = await b3.health()
            assert " 503 " in health.splitlines()[0]
            assert CYCLE.search(health)
            for each in (b1, b2):
                health = await each.health()
                assert " 200 " in health.splitlines()[0], health
            await check_use(b1, b3)

    run(scenario(), within_s=60.0)


def test_two_links_race_and_one_of_them_is_refused() -> None:
    async def scenario() -> None:
        async with brokers("A", "B", "C", "D") as (a, b, c, d):
            await asyncio.gather(a.start(c.url), b.start(a.url), c.start(), d.start(c.url, b.url))
            await until(lambda: bool([*a.ways, *b.ways, *d.ways]))
            for first, last in ((a, d), (b, c)):
                await check_use(first, last)
            # It is tried again, and refused again.
            assert len({*a.ways, *b.ways, *d.ways}) == 1

    run(scenario(), within_s=60.0)


def test_a_link_that_both_ends_have_is_one_link() -> None:
    async def scenario() -> None:
        async with brokers("M1", "M2") as (one, two):
            await one.start(two.url)
            await two.start(one.url)
            async with godwit.connect(one.url) as alice, godwit.connect(two.url) as paul:
                for client in (alice, paul):
                    await client.ready(timeout_s=30.0)
                events = alice.subscribe(NUMBERS)
                await events.in_effect()
                await paul.advertise(NUMBERS)
                await paul.publish({"x": 1})
                assert (await anext(events)).content == {"x": 1}
                assert not alice.gaps.seen
                assert not paul.gaps.seen
            for broker in (one, two):
                assert " 200 " in await broker.health()
                assert not [line for line in broker.errors if " warning " in line]

    run(scenario())
