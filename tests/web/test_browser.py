"""The dashboard in a real browser, in front of a real network under load.

It needs Debian's Chromium; where that is absent the test is skipped, and says how to install it.
With GODWIT_PICTURES=FOLDER it also writes a picture of each view, as docs/pictures/ has them:

    GODWIT_PICTURES=docs/pictures .venv/bin/pytest tests/web/test_browser.py
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
from tests.asynchronous import run
from tests.web.browser import MISSING, Browser, browser, is_installed
from tests.web.live_scene import (
    PERIOD_S,
    QUOTE,
    brokers_here,
    dashboard_of,
    directory_of,
    traffic,
)
from tests.web.proposal_scene import proposing
from tests.web.recorded_scene import record

from godwit.api.dashboard_api import BrokerActivity, BrokerRow
from godwit.api.routing_api import PolicyDecision
from godwit.client import connect
from godwit.overlay.topology import balanced_tree
from godwit.runtime.deployment import COORDINATOR, LocalDeployment
from godwit.runtime.restarting import RestartLimit
from godwit.runtime.settings import Limits, ServiceSettings, Table, network_of
from godwit.web.directory import Directory
from godwit.web.recorded_trace import RecordedTrace, read_trace
from godwit.web.replaying import Replay

pytestmark = pytest.mark.skipif(not is_installed(), reason=MISSING)

PICTURES = os.environ.get("GODWIT_PICTURES")
BROKERS = 3
WITHIN_S = 240.0

#: What each view shows of this network, as an expression.
SHOWS = {
    "map": "document.querySelectorAll('svg.map .node').length === 3",
    "brokers": "document.querySelectorAll('tbody tr').length === 3",
    "moves": "document.body.innerText.includes('Last look at the loads')",
    "balance": "document.querySelectorAll('svg.curve path.one').length >= 3",
    "filters": "document.body.innerText.includes(\"symbol = 'YHOO'\")",
    "channels": "document.body.innerText.includes('has no data cluster')",
    "tail": "document.querySelector('form input').value.length > 0",
    "lab": "document.querySelectorAll('details').length > 5"
    " || document.body.innerText.includes('the lab is not here')",
}


@contextlib.asynccontextmanager
async def network(folder: Path) -> AsyncIterator[LocalDeployment]:
    """Three broker processes and a coordinator, started again when they end."""
    table: Table = {"listen": "127.0.0.1:0", "state": str(folder / "state"), "report_s": 0.5}
    settings = msgspec.structs.replace(
        network_of(balanced_tree(BROKERS, fanout=2), http_port=0),
        services=ServiceSettings(coordinator=table),
        limits=Limits(load_window_s=0.5),
    )
    async with LocalDeployment(settings, supervised=True) as running:
        watching = asyncio.create_task(running.supervise(RestartLimit(20, 1.0)))
        try:
            yield running
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


def directory(running: LocalDeployment) -> Directory:
    names = [each.id for each in running.brokers.network.broker]
    return Directory(
        brokers=lambda: {name: running.brokers.http(name) for name in names},
        coordinator=lambda: running.services[COORDINATOR].url,
    )


def click(text: str) -> str:
    """An expression that presses the button with this text."""
    return f"[...document.querySelectorAll('button')].find(b => b.textContent === '{text}').click()"


async def picture(page: Browser, name: str) -> None:
    if PICTURES:
        await asyncio.sleep(1.0)
        await page.screenshot(Path(PICTURES) / f"{name}.png")


async def show_views(page: Browser) -> None:
    for number, (view, condition) in enumerate(SHOWS.items(), start=1):
        await page.press(str(number))
        await page.until(f"location.hash === '#{view}'")
        await page.until(condition)
        await picture(page, view)
    assert await page.console_errors() == []


async def tell_a_story(page: Browser) -> None:
    await page.run("void (location.hash = 'filters')")
    await page.until("document.querySelector('[name=record]') !== null")
    for field, value in {"record": QUOTE, "publisher": "paul", "to": "tom"}.items():
        await page.run(f"void (document.querySelector('[name={field}]').value = '{value}')")
    await page.run(click("Tell the story"))
    await page.until("document.body.innerText.includes('price > 100 fails: price is 12')")
    assert await page.run("document.body.innerText.includes('tom: filter fails')")
    await picture(page, "why")


async def follow_a_tail(page: Browser) -> None:
    await page.run("void (location.hash = 'tail')")
    await page.until("document.querySelector('.tail') !== null")
    await page.run(click("Follow"))
    await page.until("document.querySelectorAll('.tail li').length > 3")
    await picture(page, "tail")
    await page.run(click("Stop"))
    await page.until("document.body.innerText.includes('Follow')")


async def drain_a_broker(page: Browser) -> None:
    """With a confirmation; then back."""
    await page.run("void (location.hash = 'map')")
    node = "document.querySelector('.node[data-broker=B3]')"
    await page.until(f"{node} !== null")
    await page.run(f"void {node}.dispatchEvent(new Event('click'))")
    for word, state in (("Drain", "draining"), ("Undrain", "serving")):
        await page.until(f"document.querySelector('aside').innerText.includes('{word}')")
        await page.run(click(word))
        await page.until("document.getElementById('confirm') !== null")
        await picture(page, word.lower())
        await page.run("void document.getElementById('confirm').click()")
        await page.until("document.getElementById('dialog').innerText.includes('Change')")
        await page.press("\ue00c")  # Escape.
        await page.until(f"document.querySelector('aside .pill').textContent === '{state}'")


async def survive_restarts(page: Browser, running: LocalDeployment) -> None:
    """Each process behind the page is killed, and started again."""
    await page.run("void (location.hash = 'brokers')")
    victims: list[Callable[[], int]] = [
        lambda: running.brokers.pid("B2"),
        lambda: running.services[COORDINATOR].pid,
    ]
    for victim in victims:
        killed = victim()
        os.kill(killed, signal.SIGKILL)
        while True:
            with contextlib.suppress(Exception):
                if victim() != killed:
                    break
            await asyncio.sleep(0.1)
    await page.until(
        "document.querySelector('#totals').innerText.startsWith('3 of 3')"
        " && document.querySelector('#banner').hidden"
    )


async def fit_a_phone(page: Browser) -> None:
    await page.size(500, 860)  # Chromium's smallest window.
    for view, condition in SHOWS.items():
        await page.run(f"void (location.hash = '{view}')")
        await page.until(condition)
        wide = "document.documentElement.scrollWidth <= window.innerWidth"
        assert await page.run(wide), f"{view} is wider than a phone"
    await page.run("void (location.hash = 'map')")
    await picture(page, "phone")
    await page.size(1280, 800)


HOSTILE = "<img src=x onerror=window.hit=1>"
IS_HIT = (
    "window.hit !== undefined"
    " || document.querySelector('main img, dialog img, #replay img, #banner img') !== null"
)


def test_text_of_clients_is_text(tmp_path: Path) -> None:
    """What applications choose (filters, records, names that are typed) never becomes elements."""

    async def scenario() -> None:
        async with (
            brokers_here() as running,
            dashboard_of(directory_of(running)) as (_dashboard, url),
            connect(running["B1"].url, name="paul") as paul,
            connect(running["B2"].url, name="sue") as sue,
            sue.subscribe(f"class = '{HOSTILE}'") as events,
            browser(tmp_path / "profile") as page,
        ):
            await paul.advertise(f"class = '{HOSTILE}' and text is a string")
            await events.in_effect()
            record = {"class": HOSTILE, "text": f"\"'{HOSTILE}</script>"}
            await page.open(f"{url}/#filters")
            await page.until(f"document.body.innerText.includes({json.dumps(HOSTILE)})")
            fields = {"record": json.dumps(record), "publisher": "paul", "to": HOSTILE}
            for field, value in fields.items():
                box = f"document.querySelector('[name={field}]')"
                await page.run(f"void ({box}.value = {json.dumps(value)})")
            for button, shown in (("Who matches?", "1 of 1"), ("Tell the story", "unknown sub")):
                await page.run(click(button))
                await page.until(f"document.body.innerText.includes('{shown}')")
            await page.run("void (location.hash = 'tail')")
            await page.until("document.querySelector('.tail') !== null")
            await page.run(click("Follow"))
            await page.until("document.body.innerText.includes('Subscribed at')")
            await paul.publish(record)
            await page.until("document.querySelectorAll('.tail li').length === 1")
            assert not await page.run(IS_HIT)
            assert await page.console_errors() == []

    run(scenario(), within_s=WITHIN_S)


def test_a_proposal_of_a_dry_run_can_be_approved_or_rejected(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            proposing(tmp_path / "state") as proposals,
            dashboard_of(proposals) as (_dashboard, url),
            browser(tmp_path / "profile") as page,
        ):
            await page.size(1280, 800)
            await page.open(f"{url}/#moves")
            await page.until("document.body.innerText.includes('Approve')")
            await picture(page, "proposals")
            await page.run(click("Reject"))
            await page.until("document.getElementById('confirm') !== null")
            await page.run("void document.getElementById('confirm').click()")
            await page.until("document.getElementById('dialog').innerText.includes('is rejected')")
            await page.press("\ue00c")  # Escape.
            await page.until("document.querySelector('td .pill').textContent === 'rejected'")
            assert await page.console_errors() == []

    run(scenario(), within_s=WITHIN_S)


def test_text_of_a_trace_is_text(tmp_path: Path) -> None:
    row = BrokerRow(broker=HOSTILE, state=HOSTILE, clients=3, url=HOSTILE)
    decision = PolicyDecision(
        number=1, at_s=0.0, policy=HOSTILE, action=HOSTILE, subject=HOSTILE, source="B1",
        target=HOSTILE, reason={HOSTILE: HOSTILE},
    )  # fmt: skip
    trace = RecordedTrace(
        start_s=0.0,
        end_s=9.0,
        rows={HOSTILE: [(0.0, row)], "B1": []},
        links={("B1", HOSTILE): {0: 100}},
        decisions=[BrokerActivity(broker=HOSTILE, decision=decision)],
    )

    async def scenario() -> None:
        async with (
            Replay(trace, HOSTILE).serve("127.0.0.1:0") as url,
            browser(tmp_path / "profile") as page,
        ):
            await page.open(url)
            await page.until("document.querySelectorAll('.node').length === 2")
            await page.run("void document.querySelector('.node').dispatchEvent(new Event('click'))")
            for view in ("brokers", "moves", "balance"):
                await page.run(f"void (location.hash = '{view}')")
                await page.until("document.querySelectorAll('tbody tr').length > 0")
            await page.run("void document.querySelector('tbody tr').click()")
            await asyncio.sleep(0.5)
            assert not await page.run(IS_HIT)
            assert await page.console_errors() == []

    run(scenario(), within_s=WITHIN_S)


def test_a_trace_of_500_brokers_is_played_and_its_map_can_be_used(tmp_path: Path) -> None:
    record(tmp_path / "trace", brokers=500, publishers=5)
    trace = read_trace(tmp_path / "trace")

    async def scenario() -> None:
        async with (
            Replay(trace, "traces/monday").serve("127.0.0.1:0") as url,
            browser(tmp_path / "profile") as page,
        ):
            await page.size(1280, 800)
            await page.open(url)
            await page.until("document.querySelectorAll('.node').length === 500")
            assert await page.run("document.querySelectorAll('nav a:not([hidden])').length === 5")
            assert await page.run("document.querySelectorAll('.node text').length === 0")
            await page.press(" ")
            await page.until("document.getElementById('replay').innerText.includes('Stop')")
            await page.until("document.querySelectorAll('line.link').length === 499")
            await page.press(" ")
            await page.until("document.getElementById('replay').innerText.includes('Play')")
            node = "document.querySelector('.node[data-broker=B001]')"
            await page.run(f"void {node}.dispatchEvent(new Event('click'))")
            await page.until("document.querySelector('aside').innerText.includes('Broker B001')")
            assert "Drain" not in await page.run("document.querySelector('aside').innerText")
            await picture(page, "replay")
            for _ in range(5):
                await page.run("void document.querySelector('[aria-label=Closer]').click()")
            assert await page.run("document.querySelectorAll('.node text').length > 3")
            assert await page.console_errors() == []

    run(scenario(), within_s=WITHIN_S)


def test_every_view_action_and_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with network(tmp_path) as running, contextlib.AsyncExitStack() as stack:
            urls = running.brokers
            await stack.enter_async_context(traffic(urls.url("B1"), urls.url("B3")))
            page = await stack.enter_async_context(browser(tmp_path / "profile"))
            await page.size(1280, 800)
            async with dashboard_of(directory(running)) as (_first, url):
                await page.open(url)
                await page.until(SHOWS["map"])
                await asyncio.sleep(3 * PERIOD_S)
                await show_views(page)
                await tell_a_story(page)
                await follow_a_tail(page)
                await drain_a_broker(page)
                assert await page.console_errors() == []
                await survive_restarts(page, running)
                await page.console_errors()  # A call may have failed meanwhile.
                await fit_a_phone(page)
                await page.press("t")
                await page.until("document.documentElement.dataset.theme === 'dark'")
                await picture(page, "dark")
                assert await page.console_errors() == []
            await page.until("document.getElementById('connection').textContent !== 'live'")

    run(scenario(), within_s=WITHIN_S)
