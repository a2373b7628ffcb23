"""What is written as TOML is read back equal, whatever the text in it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as any_of

from godwit.runtime.toml_writer import toml_text

TEXTS = any_of.text()
NUMBERS = any_of.integers() | any_of.floats(allow_nan=False)
SCALARS = TEXTS | NUMBERS | any_of.booleans()
VALUES = SCALARS | any_of.lists(SCALARS, max_size=3)
#: In a list of tables, and in other values, tables are written inline.
INLINE = any_of.dictionaries(TEXTS, VALUES, max_size=3)
TABLES = any_of.recursive(
    any_of.dictionaries(TEXTS, VALUES | any_of.lists(INLINE, max_size=3), max_size=3),
    lambda tables: any_of.dictionaries(TEXTS, VALUES | tables, max_size=3),
    max_leaves=5,
)


@given(TABLES)
def test_what_is_written_is_read_back_equal(table: dict[str, object]) -> None:
    found = tomllib.loads(toml_text(table))
    assert found == table
    assert repr(found) == repr(_in_file_order(table)), "True is not 1, and 1 is not 1.0"


def _in_file_order(table: dict[str, object]) -> dict[str, object]:
    """Values before tables, as the file has them."""

    def is_table(value: object) -> bool:
        return isinstance(value, dict) or (
            isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)
        )

    ordered = sorted(table.items(), key=lambda item: is_table(item[1]))
    return {k: _in_file_order(v) if isinstance(v, dict) else v for k, v in ordered}


@pytest.mark.parametrize(
    "text",
    ['"', "\\", "\n", "\r\n", "\x00", "\x1f", "\x7f", "\x85", "'''", '"""', "é", "😀", "#", ""],
)
def test_hostile_text_is_a_value_and_a_key(text: str) -> None:
    table = {text: text, "table": {text: [text, text]}, "list": [{text: {text: text}}]}
    assert tomllib.loads(toml_text(table)) == table


def test_a_document_reads_well() -> None:
    table = {
        "limits": {"session_s": 5.0},
        "overlay": "tree",
        "services": {"datacluster": {"folder": "data"}, "coordinator": {}},
        "broker": [{"id": "B1", "links": ["B2"]}, {"id": "B2", "location": {"latitude": 1.5}}],
    }
    assert toml_text(table) == (
        'overlay = "tree"\n\n[limits]\nsession_s = 5.0\n\n[services.datacluster]\nfolder = "data"\n'
        '\n[services.coordinator]\n\n[[broker]]\nid = "B1"\nlinks = ["B2"]\n'
        '\n[[broker]]\nid = "B2"\nlocation = { latitude = 1.5 }\n'
    )


def test_what_toml_does_not_have_is_refused() -> None:
    with pytest.raises(TypeError, match="TOML has no NoneType"):
        toml_text({"folder": None})
