"""The tables of settings in the manuals have every key, with the default of the code."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from godwit.coordinator.autoscale_rule import AutoscaleSettings
from godwit.coordinator.settings import CoordinatorSettings
from godwit.datacluster.settings import DataClusterSettings
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.policies.offload.settings import BalancingSettings
from godwit.runtime.settings import Limits

DOCS = Path(__file__).parent.parent / "docs"


def documented(page: str) -> dict[str, str]:
    """Keys and defaults of the tables of a page."""
    row = re.compile(r"^\| (?:`\[+\w+\]+` )?`(\w+)` \| ([^|]*) \|", re.MULTILINE)
    found: dict[str, str] = {}
    for key, default in row.findall((DOCS / page).read_text()):
        found.setdefault(key, default.strip().strip("`"))  # The first table is that of the server.
    return found


def shown(value: object) -> set[str]:
    """The ways in which a page may write a default."""
    match value:
        case None:
            return {"none", "never", "as `beta", "as `beta`"}
        case bool():
            return {str(value).lower()}
        case int() | float():
            mebibytes = f"{value / 1024**2:g} MiB"
            return {f"{value:g}", f"{value:.0f}", f"{value:,}", f"{value:,.0f}", mebibytes}
        case _:
            return {f'"{value}"'}


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("datacluster.md", DataClusterSettings),
        ("coordinator.md", CoordinatorSettings),
        ("reshaping.md", AutoscaleSettings),
        ("operating.md", Limits),
        ("operating.md", BalancingSettings),
        ("croc.md", ProfilingSettings),
    ],
)
def test_each_setting_is_documented_with_its_default(page: str, kind: type[msgspec.Struct]) -> None:
    table = documented(page)
    builtins: dict[str, object] = msgspec.to_builtins(kind())
    # A kind may leave out defaults when it is written.
    defaults = {**msgspec.structs.asdict(kind()), **builtins}
    for key, value in defaults.items():
        assert key in table, f"docs/{page} does not have {key}"
        assert table[key] in shown(value), f"docs/{page}: {key} is {value!r}"
