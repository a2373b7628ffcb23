"""What a broker writes: a line for each thing, with its fields."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec
import pytest

from godwit.errors import PeerError
from godwit.runtime.logs import configure

log = logging.getLogger("godwit.test")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.handlers = []
    yield
    root.setLevel(level)
    root.handlers = handlers


def test_a_json_line_has_the_event_its_fields_and_where_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure("info", "json", broker="B1")
    log.info("away", extra={"peer": "alice\n", "reason": PeerError("she left"), "count": 3})
    log.debug("not to be seen")

    (line,) = capsys.readouterr().err.splitlines()
    found = msgspec.json.decode(line)
    assert found.pop("time") > 1.7e9
    assert found == {
        "level": "info",
        "logger": "godwit.test",
        "event": "away",
        "broker": "B1",
        "peer": "alice\n",
        "reason": "she left",
        "count": 3,
    }


def test_an_error_is_one_json_line_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    configure("error", "json")
    try:
        raise PeerError("poison")  # noqa: TRY301
    except PeerError:
        log.exception("failed")

    (line,) = capsys.readouterr().err.splitlines()
    assert msgspec.json.decode(line)["error"].endswith("PeerError: poison")


def test_a_text_line_has_the_same_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure("warning", "text", broker="B1")
    log.warning("refused", extra={"peer": "10.0.0.1:99"})
    log.info("not to be seen")

    (line,) = capsys.readouterr().err.splitlines()
    assert line.split()[1:] == ["warning", "refused", "broker=B1", "peer=10.0.0.1:99"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("B1", "B1"),
        (3, "3"),
        ("godwit://127.0.0.1:7401", "godwit://127.0.0.1:7401"),
        ("connection lost", '"connection lost"'),
        ('said goodbye: "bye"', '"said goodbye: \\"bye\\""'),
        ("x=1", '"x=1"'),
        ("one\ntwo", '"one\\ntwo"'),
        ("a\\b", '"a\\\\b"'),
        ("", '""'),
        ("Zürich", "Zürich"),
    ],
)
def test_a_value_with_blanks_is_quoted(
    value: object, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("info", "text")
    log.info("away", extra={"reason": value, "peer": "alice"})

    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f" reason={shown} peer=alice")
