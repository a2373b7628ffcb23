"""The server of the dashboard, over loopback, in front of live brokers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import msgspec
import pytest
from tests.asynchronous import run
from tests.web.live_scene import (
    PERIOD_S,
    QUOTE,
    brokers_here,
    dashboard_of,
    directory_of,
    traffic,
)
from tests.web.proposal_scene import proposing

from godwit.api import dashboard_api as api
from godwit.api.coordinator_api import MoveRecord, Outcome
from godwit.api.network_api import BrokerAccount, LinkView
from godwit.api.network_views import Known
from godwit.api.routing_api import PolicyDecision, TableEntryView
from godwit.client import connect
from godwit.http.errors import RestError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.web import table_questions
from godwit.web.client_stories import events_of
from godwit.web.dashboard import Dashboard
from godwit.web.directory import Directory
from godwit.web.overviews import NetworkFindings, overview_of
from godwit.web.page_serving import STATIC
from godwit.web.streams import page_events
from godwit.web.table_questions import covering


@contextlib.asynccontextmanager
async def scene() -> AsyncIterator[tuple[Dashboard, HttpClient]]:
    """B1 - B2 with traffic, and a dashboard."""
    async with (
        brokers_here() as running,
        traffic(running["B1"].url, running["B2"].url),
        dashboard_of(directory_of(running)) as (dashboard, url),
        HttpClient(url, attempts=1) as page,
    ):
        yield dashboard, page


def test_the_overview_has_what_brokers_say() -> None:
    async def scenario() -> None:
        async with scene() as (dashboard, page):
            overview = await page.call(api.OVERVIEW, Nothing())
            rows = {row.broker: row for row in overview.brokers}
            assert {name: row.state for name, row in rows.items()} == {
                "B1": "serving",
                "B2": "serving",
            }
            assert (rows["B1"].clients, rows["B1"].publishers) == (1, 1)
            assert (rows["B2"].clients, rows["B2"].publishers) == (2, 0)
            assert [(link.one, link.other, link.status) for link in overview.links] == [
                ("B1", "B2", "up")
            ]
            assert overview.totals.clients == 3
            await asyncio.sleep(PERIOD_S * 1.5)
            later = await page.call(api.OVERVIEW, Nothing())
            assert later.totals.deliveries_per_s > 0
            history = await page.call(api.HISTORY, api.WhichHistory("B1"))
            assert len(history.at_s) == dashboard.gatherer.rounds == len(history.figures["load"])

    run(scenario())


def test_without_a_page_nothing_is_asked() -> None:
    async def scenario() -> None:
        async with scene() as (dashboard, _page):
            gatherer = dashboard.gatherer
            await asyncio.sleep(3 * PERIOD_S)
            assert gatherer.rounds == 0
            events = page_events(gatherer)
            first = await anext(events)
            assert first.startswith(b"event: overview\n")
            assert gatherer.pages == 1
            await events.aclose()  # type: ignore[attr-defined]
            assert gatherer.pages == 0
            await asyncio.sleep(2 * PERIOD_S)
            rounds = gatherer.rounds
            await asyncio.sleep(3 * PERIOD_S)
            assert gatherer.rounds == rounds

    run(scenario())


def test_filters_matches_and_stories() -> None:
    async def scenario() -> None:
        async with scene() as (_dashboard, page):
            found = await page.call(api.FILTERS, api.WhichFilters())
            assert [(row.broker, row.subscription.client) for row in found.subscriptions] == [
                ("B2", "sue"),
                ("B2", "tom"),
            ]
            some = await page.call(api.FILTERS, api.WhichFilters(contains="price"))
            assert [row.subscription.client for row in some.subscriptions] == ["tom"]
            answer = await page.call(api.MATCHES, api.MatchQuestion(QUOTE))
            assert [each.finding.client for each in answer.matching] == ["sue"]
            assert [each.finding.failures for each in answer.others] == [
                ["price > 100 fails: price is 12"]
            ]
            asked = api.WhyQuestion(record=QUOTE, publisher="paul", to="tom")
            story = await page.call(api.WHY, asked)
            assert (story.reason, story.ends_at) == (api.EndReason.FILTER_FAILS, "B2")
            assert story.delivered_to == {"sue": "B2"}
            assert (story.publisher_broker, story.to_broker) == ("B1", "B2")

    run(scenario())


def test_long_tables_are_looked_at_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_questions, "LISTED_MAX", 7)

    async def scenario() -> None:
        async with (
            brokers_here() as running,
            dashboard_of(directory_of(running)) as (_dashboard, url),
            HttpClient(url, attempts=1) as page,
            contextlib.AsyncExitStack() as stack,
        ):
            client = await stack.enter_async_context(connect(running["B1"].url, name="ann"))
            for number in range(30):
                await stack.enter_async_context(client.subscribe(f"n > {number}"))
            await client.flush()
            question = api.MatchQuestion('{"n": 20}')
            answer = await page.call(api.MATCHES, question)
            assert (answer.count, answer.looked_at, answer.found) == (20, 30, 30)
            assert len({each.finding.id for each in answer.matching}) == 20
            monkeypatch.setattr(table_questions, "LOOKED_AT_MAX", 14)
            some = await page.call(api.MATCHES, question)
            assert (some.looked_at, some.found) == (14, 30)

    run(scenario())


def test_soft_links_are_shown_beside_those_of_the_tree() -> None:
    def account(name: str, links: list[LinkView], soft: list[LinkView]) -> BrokerAccount:
        return BrokerAccount(
            broker=name, start="1", pid=1, started_s=0.0, url="", links=links, soft_links=soft
        )

    b1 = account("B1", [LinkView("B2", "up", 5.0)], [LinkView("B3", "up", 7.0, "soft")])
    b2 = account("B2", [LinkView("B1", "up", 2.0), LinkView("B3", "up", 1.0, "cross")], [])
    b3 = account("B3", [LinkView("B2", "away", 4.0, "cross")], [LinkView("B1", "up", 3.0, "soft")])
    known = {each.broker: Known(each) for each in (b1, b2, b3)}

    def links() -> list[tuple[str, str, str, float, str]]:
        shown = overview_of(NetworkFindings(known=known), 0.0).links
        return [(one.one, one.other, one.status, one.bytes_per_s, one.kind) for one in shown]

    assert links() == [
        ("B1", "B2", "up", 7.0, "primary"),
        ("B1", "B3", "up", 10.0, "soft"),
        ("B2", "B3", "away", 0.0, "cross"),
    ]
    known["B1"] = Known(b1, is_live=False)
    assert ("B1", "B3", "up", 3.0, "soft") in links(), "B3 still says so"


def test_covering_is_a_forest_with_the_narrowest_filter_above() -> None:
    filters = {
        "a": "n > 0", "b": "n > 5", "c": "n > 9 and m = 1", "d": "n > 5", "e": "m = 1", "f": "k = 2"
    }  # fmt: skip
    views = [TableEntryView(id=id, client="", filter=text, hop="") for id, text in filters.items()]
    assert covering(views) == {"b": "a", "c": "d", "d": "b"}


def test_a_move_says_first_what_it_would_do_and_then_what_it_did() -> None:
    async def scenario() -> None:
        async with scene() as (_dashboard, page):
            request = api.ActionRequest(
                kind=api.ActionKind.MOVE, broker="B2", to="B1", clients=["sue"], dry_run=True
            )
            would = await page.call(api.ACT, request)
            assert would.says == ["sue would be asked to move from B2 to B1, without loss."]
            before = await page.call(api.OVERVIEW, Nothing())
            assert [row.clients for row in before.brokers] == [1, 2]
            sure = api.ActionRequest(
                kind=api.ActionKind.MOVE, broker="B2", to="B1", clients=["sue"]
            )
            done = await page.call(api.ACT, sure)
            assert done.is_done
            assert done.says[0].startswith("1 clients have moved to B1 in ")
            await asyncio.sleep(PERIOD_S)
            after = await page.call(api.OVERVIEW, Nothing())
            assert [row.clients for row in after.brokers] == [2, 1]

    run(scenario())


def test_the_story_of_a_client_says_where_it_is_and_who_moved_it() -> None:
    async def scenario() -> None:
        async with scene() as (_dashboard, page):
            story = await page.call(api.CLIENT_STORY, api.WhichClient("tom"))
            where = "tom is a client of B2, connected, with 1 subscriptions and 0 advertisements."
            assert story.says == [where]
            assert [place.broker for place in story.places] == ["B2"]
            away = await page.call(api.CLIENT_STORY, api.WhichClient("zoe"))
            assert away.says == ["zoe is not a client of any broker that answers."]

    run(scenario())
    move = MoveRecord(
        number=1, plan=1, client="tom", source="B1", target="B2", why="B1 is crowded",
        outcome=Outcome.MOVED, asked_s=10.0, ended_s=11.0,
    )  # fmt: skip
    decision = PolicyDecision(
        number=7, at_s=20.0, policy="offload", action="moved", subject="tom", source="B2",
        target="B1", reason={"load": 0.9},
    )  # fmt: skip
    assert [(each.at_s, each.by, each.says) for each in events_of([move], {"B2": [decision]})] == [
        (20.0, "offload at B2", "moved from B2 to B1: load 0.9"),
        (11.0, "the coordinator", "it moved from B1 to B2: B1 is crowded"),
    ]


def test_a_proposal_of_the_coordinator_can_be_rejected(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            proposing(tmp_path) as directory,
            dashboard_of(directory) as (_dashboard, url),
            HttpClient(url, attempts=1) as page,
        ):
            (move,) = (await page.call(api.ACTIVITY, Nothing())).moves
            reject = api.ActionRequest(kind=api.ActionKind.REJECT, move=move.number, dry_run=True)
            would = await page.call(api.ACT, reject)
            what = f"The proposal to move {move.client} from B1 to B2"
            assert would.says == [f"{what} would be rejected, and not be made again soon."]
            assert (await page.call(api.ACTIVITY, Nothing())).moves[0].outcome == "proposed"
            done = await page.call(api.ACT, msgspec.structs.replace(reject, dry_run=False))
            assert done.says == [f"{what} is rejected."]
            await asyncio.sleep(PERIOD_S * 1.5)
            (after,) = (await page.call(api.ACTIVITY, Nothing())).moves
            assert after.outcome == "rejected"
            assert after.because.startswith("rejected on the dashboard of ")
            overview = await page.call(api.OVERVIEW, Nothing())
            assert overview.sharing == api.SharingCounts(front_end=2, back_end=1)

    run(scenario())


def test_a_drain_without_a_coordinator_needs_a_broker_that_takes_the_clients() -> None:
    async def scenario() -> None:
        async with scene() as (_dashboard, page):
            drain = api.ActionRequest(kind=api.ActionKind.DRAIN, broker="B2", to="B1")
            done = await page.call(api.ACT, drain)
            assert done.is_done
            assert done.says[0] == "Broker B2 refuses new clients."
            await asyncio.sleep(PERIOD_S)
            after = await page.call(api.OVERVIEW, Nothing())
            assert [row.state for row in after.brokers] == ["serving", "draining"]

    run(scenario())


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (api.ActionRequest(kind=api.ActionKind.MOVE, broker="B9", to="B1"), "no broker 'B9'"),
        (api.ActionRequest(kind=api.ActionKind.MOVE, broker="B2", to="B1"), "say who moves"),
        (api.ActionRequest(kind=api.ActionKind.PAUSE), "no broker balances its load"),
        (api.ActionRequest(kind=api.ActionKind.UNDRAIN, broker="B1"), "needs a coordinator"),
        (api.ActionRequest(kind=api.ActionKind.APPLY, plan="{"), "not a plan"),
    ],
    ids=["unknown broker", "no clients", "no balancing", "no coordinator", "no plan"],
)
def test_actions_that_are_not_possible_say_why(request_: api.ActionRequest, error: str) -> None:
    async def scenario() -> None:
        async with (
            brokers_here() as running,
            dashboard_of(directory_of(running)) as (_dashboard, url),
            HttpClient(url, attempts=1) as page,
        ):
            with pytest.raises(RestError, match=error):
                await page.call(api.ACT, request_)

    run(scenario())


def test_the_tail_shows_what_a_subscriber_gets() -> None:
    async def scenario() -> None:
        async with scene() as (dashboard, page):
            await page.call(api.OVERVIEW, Nothing())
            events = dashboard.tails.begin("class = 'QUOTE' and price < 1000")
            assert (await anext(events)).startswith(b"event: ready\n")
            second = await anext(events)
            assert b"event: records\n" in second
            assert b"[symbol,'YHOO']" in second
            assert dashboard.tails.open == 1
            await events.aclose()  # type: ignore[attr-defined]
            assert dashboard.tails.open == 0

    run(scenario())


def test_a_broker_that_ends_is_silent_and_one_that_comes_is_shown() -> None:
    async def scenario() -> None:
        urls: dict[str, str] = {}
        async with (
            dashboard_of(Directory(brokers=lambda: urls)) as (_dashboard, url),
            HttpClient(url, attempts=1) as page,
        ):

            async def states() -> list[str]:
                await asyncio.sleep(PERIOD_S)
                overview = await page.call(api.OVERVIEW, Nothing())
                return [row.state for row in overview.brokers]

            async with brokers_here() as running:
                urls |= {name: each.http_url or "" for name, each in running.items()}
                assert await states() == ["serving", "serving"]
            assert await states() == ["silent", "silent"]
            async with brokers_here() as running:
                urls |= {name: each.http_url or "" for name, each in running.items()}
                assert await states() == ["serving", "serving"]

    run(scenario())


@pytest.mark.parametrize(
    ("headers", "is_answered"),
    [
        ({}, True),
        ({"origin": "{url}"}, True),
        ({"origin": "{url}", "sec-fetch-site": "same-origin"}, True),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "http://127.0.0.1:1"}, False),
        ({"origin": "null"}, False),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"sec-fetch-site": "same-site"}, False),
    ],
    ids=[
        "a program", "its page, in an old browser", "its page", "another host", "another port",
        "a file or a sandbox", "an image on another host", "an image on another port",
    ],
)  # fmt: skip
def test_only_its_own_page_and_programs_are_answered(
    headers: dict[str, str], is_answered: bool
) -> None:
    async def scenario() -> None:
        async with dashboard_of(Directory()) as (_dashboard, url), httpx.AsyncClient() as client:
            sent = {name: value.format(url=url) for name, value in headers.items()}
            refused = "page of another server"
            why = await client.post(f"{url}/api/why", json={"record": "{}"}, headers=sent)
            assert (refused in why.text) is not is_answered, why.text
            for path in ("/api/overview", "/api/tail?filter=x%20>%201"):
                answer = await client.get(f"{url}{path}", headers=sent)
                assert (refused in answer.text) is not is_answered
                assert is_answered or answer.status_code == 403
            page = await client.get(url, headers=sent)
            assert page.status_code == 200

    run(scenario())


@pytest.mark.parametrize(
    ("secret", "shown", "status"),
    [("", "", 403), ("s3", "", 403), ("s3", "Bearer s3", 200), ("s3", "Bearer s4", 403),
     ("", "Bearer ", 403)],
    ids=["no secret", "not shown", "shown", "another one", "an empty one"],
)  # fmt: skip
def test_callers_on_other_machines_need_the_secret(secret: str, shown: str, status: int) -> None:
    async def scenario() -> None:
        app = Dashboard(Directory(secret=secret)).application()
        away = httpx.ASGITransport(app, client=("10.0.0.9", 1))
        headers = {"authorization": shown} if shown else {}
        async with httpx.AsyncClient(transport=away, base_url="http://10.0.0.1:7680") as client:
            assert (await client.get("/")).status_code == 200
            for path in ("/api/overview", "/api/history", "/api/filters"):
                assert (await client.get(path, headers=headers)).status_code == status, path
            tail = await client.get("/api/tail?filter=n%20>%201", headers=headers)
            assert tail.status_code == (503 if status == 200 else status), "there is no broker"
            action = await client.post("/api/actions", json={"kind": "pause"}, headers=headers)
            assert action.status_code == (400 if status == 200 else status)
            if status == 403:
                assert (await client.get("/api/stream", headers=headers)).status_code == 403

    run(scenario())


def test_the_page_asks_nothing_of_other_hosts_and_other_names_are_refused() -> None:
    async def scenario() -> None:
        async with dashboard_of(Directory()) as (_dashboard, url), httpx.AsyncClient() as client:
            page = await client.get(url)
            assert "default-src 'none'" in page.headers["content-security-policy"]
            for path in STATIC.iterdir():
                file = await client.get(f"{url}/static/{path.name}")
                assert file.content == path.read_bytes()
                text = file.text.replace("http://www.w3.org/2000/svg", "")
                assert "//" not in text.replace("// ", "").replace("//\n", ""), path.name
            away = await client.get(f"{url}/static/..%2Fdashboard.py")
            assert away.status_code == 404
            rebound = await client.get(f"{url}/api/overview", headers={"host": "evil.example"})
            assert rebound.status_code == 403
            form = await client.post(f"{url}/api/actions", data={"kind": "pause"})
            assert form.status_code == 415
            assert "default-src 'none'" in rebound.headers["content-security-policy"]

    run(scenario())
