"""The description of a server: an OpenAPI 3.1 document, and a page for people.

Both are made from the operations when the server starts.  The page loads nothing from other
servers, so that it works on machines without internet access.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec

from godwit.distribution import VERSION
from godwit.http.errors import Trouble
from godwit.http.operations import Operation

Described = Sequence[Operation[Any, Any]]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50em; margin: 2em auto; padding: 0 1em; }
code, pre { font-family: ui-monospace, monospace; }
pre { background: #f4f4f2; padding: 0.8em; overflow-x: auto; font-size: 85%; }
h2 { font-size: 1.05em; margin: 2em 0 0; }
summary { cursor: pointer; color: #555; }
"""
_HEAD = """<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>
<style>{style}</style></head><body><h1>{title}</h1>
<p>Requests and answers are JSON; a POST needs <code>content-type: application/json</code>.
Errors are <code>{{"error": ..., "where": ...}}</code>.
For programs: <a href='openapi.json'>openapi.json</a>.</p>
"""


def openapi(operations: Described, *, title: str) -> dict[str, Any]:
    types = [type for each in operations for type in (each.asked, each.answer)]
    schemas, components = msgspec.json.schema_components(
        [*types, Trouble], ref_template="#/components/schemas/{name}"
    )
    *shown, trouble = schemas
    paths: dict[str, dict[str, Any]] = {}
    ids = _ids(operations)
    for each, asked, answer in zip(operations, shown[::2], shown[1::2], strict=True):
        entry: dict[str, Any] = {
            "operationId": ids[str(each)],
            "summary": each.summary,
            "responses": {
                "200": {"description": "Done.", "content": _json(answer)},
                "default": {"description": "Not done.", "content": _json(trouble)},
            },
        }
        if each.method == "GET":
            entry["parameters"] = _parameters(each, components[each.asked.__name__])
        else:
            entry["requestBody"] = {"required": True, "content": _json(asked)}
        paths.setdefault(each.path, {})[each.method.lower()] = entry
    document: dict[str, Any] = _with_portable_patterns(
        {
            "openapi": "3.1.0",
            "info": {"title": title, "version": VERSION},
            "paths": paths,
            "components": {"schemas": components},
        }
    )
    return document


def _with_portable_patterns(part: Any) -> Any:
    """Patterns as OpenAPI has them, in ECMA-262: it has another end of text, and other letters."""
    if isinstance(part, list):
        return [_with_portable_patterns(each) for each in part]
    if not isinstance(part, dict):
        return part
    made = {key: _with_portable_patterns(value) for key, value in part.items()}
    if isinstance(pattern := made.get("pattern"), str):
        made["pattern"] = pattern.replace(r"\Z", "$").replace(r"\w", r"\p{L}\p{N}_")
    return made


def _ids(operations: Described) -> dict[str, str]:
    """Unique names: with the method, where a path has two."""
    paths = Counter(each.path for each in operations)
    return {
        str(each): each.name if paths[each.path] == 1 else f"{each.method.lower()}_{each.name}"
        for each in operations
    }


def _json(schema: Any) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _parameters(operation: Operation[Any, Any], asked: dict[str, Any]) -> list[dict[str, Any]]:
    """The fields of a request that is sent in the path and the query."""
    required = asked.get("required", [])
    return [
        {
            "name": name,
            "in": "path" if f"{{{name}}}" in operation.path else "query",
            "required": name in required,
            "schema": schema,
        }
        for name, schema in asked.get("properties", {}).items()
    ]


def page(operations: Described, *, title: str) -> str:
    document = openapi(operations, title=title)
    schemas = document["components"]["schemas"]
    parts, ids = [_HEAD.format(title=escape(title), style=_STYLE)], _ids(operations)
    for each in operations:
        guarded = (
            " From this machine only, or with the network's secret." if each.is_guarded else ""
        )
        parts.append(
            f"<h2 id='{escape(ids[str(each)])}'><code>{escape(str(each))}</code></h2>"
            f"<p>{escape(each.summary)}{guarded}</p>"
            + _details("request", schemas[each.asked.__name__])
            + _details("answer", schemas.get(each.answer.__name__))
        )
    return "".join([*parts, "</body></html>"])


def _details(name: str, schema: Any) -> str:
    if schema is None or (name == "request" and not schema.get("properties")):
        return ""
    text = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
    return f"<details><summary>{name}</summary><pre>{escape(text)}</pre></details>"
