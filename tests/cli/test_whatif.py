"""`godwit whatif` with a file of a snapshot; tests/live/test_whatif.py runs it against brokers."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from tests.rehearsal.scenes import snapshot
from typer.testing import CliRunner, Result

from godwit.api.network_api import ChangeKind, ChangeRequest
from godwit.cli import app, croc_apply, whatif_sources
from godwit.cli.gain_gate import percentage
from godwit.errors import UsageError
from godwit.rehearsal.network_snapshot import NetworkSnapshot, decode_snapshot


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["whatif", *arguments], catch_exceptions=False)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "snapshot.json"
    path.write_bytes(msgspec.json.encode(snapshot()))
    return str(path)


def test_before_after_and_the_error_stand_side_by_side(file: str) -> None:
    result = run("--snapshot", file, "-c", "traffic=2", "-c", "without=B2")
    assert result.exit_code == 0, result.output
    for word in ("measured", "before", "error", "traffic=2", "without=B2", "messages/s", "hops"):
        assert word in result.output, word
    assert "without=B2: gain of messages +33" in result.output


def test_the_report_as_json(file: str) -> None:
    result = run("--snapshot", file, "-c", "traffic=0.5", "--json")
    report = json.loads(result.output)
    assert report["outcomes"][0]["gain"] == pytest.approx(0.5, abs=0.01)
    assert report["error"]["messages_per_s"] == pytest.approx(0.0, abs=0.01)
    assert report["before"]["brokers"].keys() == {"B1", "B2", "B3"}


@pytest.mark.parametrize(
    ("change", "required", "code"),
    [("without=B2", "30%", 0), ("without=B2", "0.3", 0), ("without=B2", "40%", 1)],
)
def test_the_exit_code_says_whether_enough_is_gained(
    file: str, change: str, required: str, code: int
) -> None:
    result = run("--snapshot", file, "-c", change, "--require-gain", required)
    assert result.exit_code == code, result.output
    assert ("40% are required" in result.output) == bool(code)


def test_one_change_that_gains_enough_is_enough(file: str) -> None:
    changes = ("-c", "traffic=2", "-c", "without=B2")
    assert run("--snapshot", file, *changes, "--require-gain", "30%").exit_code == 0


def test_the_gain_is_of_what_was_asked_for(file: str) -> None:
    """Fewer messages, and one broker sends more."""
    result = run("--snapshot", file, "-c", "without=B2", "--gain-of", "load", "--json")
    report = json.loads(result.output)
    assert report["objective"] == "load"
    assert report["outcomes"][0]["gain"] == pytest.approx(0.0, abs=0.01)


def test_a_tree_of_a_network_file_and_a_plan(file: str, tmp_path: Path) -> None:
    tree = tmp_path / "net.toml"
    tree.write_text(
        '[[broker]]\nid = "B1"\n[[broker]]\nid = "B2"\nlinks = ["B1"]\n'
        '[[broker]]\nid = "B3"\nlinks = ["B1"]\n'
    )
    plan = tmp_path / "plan.json"
    plan.write_text('{"links": [], "root": "B3", "clients": {"paul": "B3", "bob": "B3"}}')
    result = run("--snapshot", file, "-c", f"tree={tree}", "-c", f"plan={plan}", "--json")
    by_change = {each["change"]: each for each in json.loads(result.output)["outcomes"]}
    assert by_change[f"tree={tree}"]["new_links"] == 1
    assert by_change[f"plan={plan}"]["moves"] == 2
    assert by_change[f"plan={plan}"]["after"]["hops"] == 0.0


def test_a_snapshot_is_saved_as_it_was_read(file: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    assert run("--snapshot", file, "--save", str(copy)).exit_code == 0
    assert decode_snapshot(copy.read_bytes()) == snapshot()


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_a_picture(file: str, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"whatif{suffix}"
    assert run("--snapshot", file, "-c", "traffic=2", "--picture", str(path)).exit_code == 0
    drawn = path.read_bytes()
    assert (b"traffic=2" in drawn) if suffix == ".svg" else drawn.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--snapshot", "none.json"), "cannot read none.json"),
        (("--snapshot", "FILE", "-c", "weather=wet"), "KIND=VALUE"),
        (("--snapshot", "FILE", "--require-gain", "much"), "is not a gain"),
        (("--snapshot", "FILE", "--picture", "x.gif"), "ends in .svg or .png"),
        (("http://127.0.0.1:1", "--snapshot", "FILE"), "not both"),
        (("http://127.0.0.1:1",), "does not answer"),
    ],
)
def test_what_is_refused(file: str, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(*(file if each == "FILE" else each for each in arguments))


@pytest.mark.parametrize(("text", "value"), [("10%", 0.1), ("0.25", 0.25), (" 0% ", 0.0)])
def test_gains(text: str, value: float) -> None:
    assert percentage(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["-1%", "100%", "ten", "1.5"])
def test_what_is_not_a_gain(text: str) -> None:
    with pytest.raises(UsageError, match="is not a gain"):
        percentage(text)


@pytest.mark.parametrize(
    ("options", "code", "is_applied"),
    [
        (("--require-gain", "60%"), 0, True),
        (("--require-gain", "70%"), 1, False),
        (("--rehearse",), 0, True),
    ],
)
def test_a_plan_is_applied_only_if_its_rehearsal_gains_enough(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    code: int,
    is_applied: bool,
) -> None:
    """Everyone at B1: two thirds of the messages are gone."""
    plan = tmp_path / "plan.json"
    homes = dict.fromkeys(("paul", "bob", "carol", "dave"), "B1")
    plan.write_text(json.dumps({"links": [], "root": "B1", "clients": homes}))
    applied: list[ChangeRequest] = []
    asked: list[object] = []

    def take(where: list[str], *_: object) -> NetworkSnapshot:
        asked.append(where)
        return snapshot()

    def record(request: ChangeRequest, *_: object, **_facts: object) -> None:
        applied.append(request)

    monkeypatch.setattr(whatif_sources, "live_snapshot", take)
    monkeypatch.setattr(croc_apply, "change_network", record)
    at = "http://127.0.0.1:1"
    result = CliRunner().invoke(app, ["croc", "apply", str(plan), "--at", at, *options])
    assert result.exit_code == code, result.output
    assert "gain of messages +66.7%" in result.output
    assert asked == [[at]]
    assert [request.kind for request in applied] == [ChangeKind.ALLOCATE] * is_applied
