"""Operations over HTTP on loopback: answers, and the one form of errors."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest
from tests.asynchronous import run
from tests.http.shop import SECRET, Shop

from godwit.api.balancing_api import BALANCING, COMMAND_BALANCING
from godwit.api.broker_api import MOVE
from godwit.http.application import is_local
from godwit.http.openapi import openapi, page
from godwit.http.operations import Operation

JSON = {"content-type": "application/json"}


async def ask(
    method: str, path: str, body: bytes = b"", headers: dict[str, str] = JSON
) -> httpx.Response:
    async with Shop().opened() as url, httpx.AsyncClient(base_url=url, trust_env=False) as client:
        return await client.request(method, path, content=body, headers=headers)


def order(item: str) -> bytes:
    return msgspec.json.encode({"item": item})


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "error", "where"),
    [
        pytest.param("POST", "/order", b"{", 400, "truncated", "$", id="cut off"),
        pytest.param("POST", "/order", b"\xff", 400, "malformed", "$", id="no JSON"),
        pytest.param("POST", "/order", b'{"item":"\xff"}', 400, "utf-8", "$", id="no text"),
        pytest.param("POST", "/order", b"[" * 150, 400, "Expected `object`", "$", id="an array"),
        pytest.param("POST", "/order", b"{}", 400, "missing", "$", id="a field is missing"),
        pytest.param(
            "POST", "/order", b'{"item":7}', 400, "Expected `str`, got `int`", "$.item",
            id="a field of another type",
        ),
        pytest.param(
            "POST", "/order", b'{"item":"a","count":0}', 400, ">= 1", "$.count", id="out of range"
        ),
        pytest.param("POST", "/order", b'{"item":"a","x":0}', 400, "`x`", "$", id="unknown field"),
        pytest.param("GET", "/shelves/x", b"", 400, "Expected `int`", "$.number", id="in a path"),
        pytest.param(
            "GET", "/shelves/1?limit=many", b"", 400, "Expected `int", "$.limit", id="in a query"
        ),
        pytest.param("GET", "/shelves/1?x=1", b"", 400, "`x`", "$", id="unknown in a query"),
        pytest.param("POST", "/order", order("silly"), 400, "who would", "POST /order", id="rule"),
        pytest.param("GET", "/nowhere", b"", 404, "not found", "GET /nowhere", id="no such path"),
        pytest.param("POST", "/order", order("gone"), 404, "no such", "item gone", id="no thing"),
        pytest.param(
            "DELETE", "/order", b"", 405, "method not allowed", "DELETE /order", id="no method"
        ),
        pytest.param("POST", "/order", order("sold"), 409, "sold", "POST /order", id="conflict"),
        pytest.param(
            "POST", "/order", order("a" * 300), 413, "200 bytes", "POST /order", id="too large"
        ),
        pytest.param("POST", "/order", order("crowd"), 429, "one at", "POST /order", id="crowded"),
        pytest.param("POST", "/order", order("fire"), 500, "the log", "POST /order", id="a bug"),
        pytest.param("POST", "/order", order("closed"), 503, "nobody", "POST /order", id="absent"),
    ],
)  # fmt: skip
def test_errors_have_one_form(
    method: str, path: str, body: bytes, status: int, error: str, where: str
) -> None:
    response = run(ask(method, path, body))
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    assert set(answer) == {"error", "where"}
    assert (response.status_code, answer["where"]) == (status, where)
    assert error in answer["error"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_what_a_form_of_some_web_page_could_send_is_not_taken(kind: str) -> None:
    response = run(ask("POST", "/order", order("a"), {"content-type": kind}))
    assert (response.status_code, response.json()["error"]) == (415, "send application/json")


def test_the_kind_of_content_may_say_how_it_is_written() -> None:
    kind = {"content-type": "application/json; charset=utf-8"}
    assert run(ask("POST", "/order", order("a"), kind)).json() == {"text": "1 a"}


def test_somebody_who_is_turned_away_hears_when_to_come_back() -> None:
    response = run(ask("POST", "/order", order("crowd")))
    assert response.headers["retry-after"] == "2"  # Whole seconds, never too early.


def test_a_method_that_is_not_allowed_is_told_which_is() -> None:
    assert "POST" in run(ask("DELETE", "/order")).headers["allow"]


def test_the_fields_of_a_get_are_in_its_path_and_query() -> None:
    response = run(ask("GET", "/shelves/7?is_open=false&limit=3"))
    assert response.json() == {"text": "7 False 3"}


async def from_elsewhere(shown: str | None, secret: str = SECRET) -> int:
    """The status of a guarded operation, for a caller on another machine."""
    headers = [(b"content-type", b"application/json")]
    if shown is not None:
        headers.append((b"authorization", shown.encode()))
    scope = {
        "type": "http", "method": "POST", "path": "/till", "headers": headers,
        "query_string": b"", "client": ("10.0.0.7", 7),
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": order("a"), "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await Shop().application(secret)(scope, receive, send)
    status: int = sent[0]["status"]
    return status


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        pytest.param(None, 403, id="a stranger"),
        pytest.param("Bearer guess", 403, id="a wrong secret"),
        pytest.param("Bearer ", 403, id="no secret"),
        pytest.param(f"Bearer {SECRET}", 200, id="the secret"),
    ],
)
def test_who_knows_the_secret_may_ask_from_elsewhere(shown: str | None, status: int) -> None:
    assert run(from_elsewhere(shown)) == status


def test_where_there_is_no_secret_nobody_knows_it() -> None:
    assert run(from_elsewhere("Bearer ", secret="")) == 403
    assert run(from_elsewhere(None, secret="")) == 403


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("10.0.0.1", False), ("me", False)],
)
def test_is_local(host: str, expected: bool) -> None:
    assert is_local(host) is expected


def test_the_server_describes_itself() -> None:
    document = run(ask("GET", "/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {"/order", "/again", "/till", "/shelves/{number}"}
    posted = document["paths"]["/order"]["post"]
    assert posted["requestBody"]["content"]["application/json"]["schema"] == {
        "$ref": "#/components/schemas/Order"
    }
    places = {
        p["name"]: p["in"] for p in document["paths"]["/shelves/{number}"]["get"]["parameters"]
    }
    assert places == {"number": "path", "is_open": "query", "limit": "query"}
    assert document["components"]["schemas"]["Order"]["properties"]["count"]["minimum"] == 1
    references = {
        text.split('"')[0]
        for text in msgspec.json.encode(document).decode().split("#/components/schemas/")[1:]
    }
    assert references == {"Order", "Bill", "Trouble"}
    assert references <= set(document["components"]["schemas"])


def test_operations_of_one_path_have_names_of_their_own() -> None:
    operations: list[Operation[Any, Any]] = [BALANCING, COMMAND_BALANCING, MOVE]
    paths = openapi(operations, title="Broker")["paths"]
    ids = [entry["operationId"] for methods in paths.values() for entry in methods.values()]
    assert ids == ["get_balancing", "post_balancing", "move"]
    assert all(f"<h2 id='{id}'>" in page(operations, title="Broker") for id in ids)


def test_the_page_lists_the_operations_and_needs_nobody_else() -> None:
    text = run(ask("GET", "/docs")).text
    for shown in ("Shop &lt;1&gt;", "POST /order", "GET /shelves/{number}", "See what is there."):
        assert shown in text
    assert "http://" not in text
    assert "https://" not in text
    assert "<script" not in text
