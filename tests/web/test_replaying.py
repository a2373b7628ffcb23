"""Recorded traces on the page: what is shown of a moment is what the trace has of it."""

from __future__ import annotations

import asyncio
import zlib
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from tests.asynchronous import run
from tests.web.recorded_scene import record

from godwit.api import dashboard_api as api
from godwit.errors import UsageError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.web.recorded_stories import recorded_story
from godwit.web.recorded_trace import RecordedTrace, read_trace
from godwit.web.replaying import Replay


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("trace")
    record(made)
    return made


@pytest.fixture(scope="module")
def trace(folder: Path) -> RecordedTrace:
    return read_trace(folder)


def rows(folder: Path, table: str) -> list[dict[str, object]]:
    return [row for path in (folder / table).iterdir() for row in pq.read_table(path).to_pylist()]


def test_a_broker_is_shown_as_its_last_gauge_has_it(folder: Path, trace: RecordedTrace) -> None:
    gauges = rows(folder, "gauges")
    for at_s in (0.0, 7.3, 14.0, trace.end_s):
        shown = {row.broker: row for row in trace.overview(at_s).brokers}
        assert len(shown) == 7
        for broker, row in shown.items():
            last = max(
                (g for g in gauges if g["broker"] == broker and g["time_s"] <= at_s),  # type: ignore[operator]
                key=lambda gauge: gauge["time_s"],  # type: ignore[arg-type,return-value]
            )
            assert row.publications_per_s == last["publications_per_s"]
            assert row.clients == last["clients"]


def test_sums_over_all_slots_are_those_of_the_trace(folder: Path, trace: RecordedTrace) -> None:
    handled = rows(folder, "handled")
    assert sum(trace.deliveries.values()) == len(rows(folder, "delivered"))
    sent = sum(row["size_bytes"] for row in handled if row["from_broker"])  # type: ignore[misc]
    assert sum(sum(slots.values()) for slots in trace.links.values()) == sent
    ends = {tuple(sorted((r["broker"], r["came_from"]))) for r in handled if r["from_broker"]}  # type: ignore[type-var]
    last = trace.overview(trace.end_s)
    assert {(link.one, link.other) for link in last.links} == ends
    assert sum(row.publishers for row in trace.overview(trace.end_s - 3).brokers) == 3
    assert not trace.overview(trace.start_s - 1).links


def test_history_goes_up_to_the_moment_that_is_shown(trace: RecordedTrace) -> None:
    own = trace.history("B1", 9.0)
    assert own.at_s == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert len(own.figures["load"]) == 5
    assert trace.history("", 9.0).at_s[-1] == 9.0
    assert trace.history("B99", 9.0).at_s == []


def test_a_folder_without_a_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no trace here"):
        read_trace(tmp_path)


def test_a_file_that_is_not_complete_is_left_out(folder: Path, tmp_path: Path) -> None:
    for table in ("handled", "gauges"):
        (tmp_path / table).mkdir()
        whole = next((folder / table).iterdir()).read_bytes()
        (tmp_path / table / "a.parquet").write_bytes(whole)
        (tmp_path / table / "b.parquet").write_bytes(whole[: len(whole) // 2])
    assert len(read_trace(tmp_path).rows) == 7


def test_the_story_of_each_publication_has_who_got_it(folder: Path) -> None:
    delivered, handled = rows(folder, "delivered"), rows(folder, "handled")
    published = {(r["publisher"], r["sequence"]) for r in handled if r["kind"] == "Publication"}
    assert published
    for publisher, sequence in sorted(published)[::5]:
        id = (publisher, sequence)
        story = recorded_story(folder, f"{publisher}#{sequence}", "zoe")
        expected = [r["client"] for r in delivered if (r["publisher"], r["sequence"]) == id]
        assert sorted(story.got_it) == sorted(expected)  # type: ignore[type-var]
        passed = {r["broker"] for r in handled if (r["publisher"], r["sequence"]) == id}
        assert all(any(f"  {broker}, from " in line for line in story.says) for broker in passed)
        assert story.says[-1].startswith("zoe did not get it. It was at ")
        if expected:
            told = recorded_story(folder, f"{publisher}#{sequence}", str(expected[0]))
            assert told.says[-1] == f"{expected[0]} got it."


@pytest.mark.parametrize("text", ["paul", "#3", "paul#x", "zoe#1"])
def test_a_publication_that_is_not_there_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"a publication is|there is nothing of"):
        recorded_story(folder, text)


def test_it_plays_stops_at_the_end_and_begins_again(trace: RecordedTrace) -> None:
    replay = Replay(trace, "a trace")
    assert replay.state.at_s == trace.start_s
    replay.command(api.ReplayRequest(is_playing=True, speed=10))
    replay.go_on(1.5)
    assert replay.overview.replay == replay.state
    assert (replay.state.at_s, replay.overview.at_s) == (15.0, 15.0)
    replay.go_on(1e6)
    assert (replay.state.at_s, replay.state.is_playing) == (trace.end_s, False)
    assert replay.command(api.ReplayRequest(is_playing=True)).at_s == trace.start_s
    assert replay.command(api.ReplayRequest(at_s=-5.0)).at_s == trace.start_s


def test_the_page_follows_the_replay(trace: RecordedTrace) -> None:
    async def scenario() -> None:
        replay = Replay(trace, "a trace", step_s=0.02)
        async with (
            replay.serve("127.0.0.1:0") as url,
            HttpClient(url, attempts=1) as page,
            httpx.AsyncClient(trust_env=False) as client,
            client.stream("GET", f"{url}/api/stream") as stream,
        ):
            assert stream.headers["content-encoding"] == "gzip"
            unpacker, text = zlib.decompressobj(wbits=31), b""
            await page.call(api.REPLAY, api.ReplayRequest(is_playing=True, speed=200))
            async for chunk in stream.aiter_raw():
                text += unpacker.decompress(chunk)
                if text.rpartition(b"event: overview\ndata: ")[2].startswith(b'{"at_s":22.0'):
                    break
            assert text.count(b"event: overview") >= 2
            overview = await page.call(api.OVERVIEW, Nothing())
            assert overview.at_s == trace.end_s
            assert (await client.post(f"{url}/api/actions", json={})).status_code == 404

    run(scenario())


def test_while_no_page_is_open_it_does_not_play(trace: RecordedTrace) -> None:
    async def scenario() -> None:
        replay = Replay(trace, "a trace", step_s=0.01)
        replay.command(api.ReplayRequest(is_playing=True))
        playing = asyncio.create_task(replay.run())
        await asyncio.sleep(0.05)
        assert replay.state.at_s == trace.start_s
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)

    run(scenario())
