"""Settings of the data cluster: every key is documented; errors name the key."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from godwit.config import changed
from godwit.datacluster.settings import DataClusterSettings, load_settings
from godwit.errors import UsageError

MANUAL = Path(__file__).parents[2] / "docs" / "datacluster.md"


def test_the_manual_explains_every_key_with_its_default() -> None:
    rows = [row.split(" | ") for row in MANUAL.read_text().splitlines() if row.startswith("| `")]
    written = {key.strip("| `"): default for key, default, *_ in rows}
    defaults = msgspec.structs.asdict(DataClusterSettings())
    for key, value in defaults.items():
        assert key in written, f"docs/datacluster.md does not explain {key}"
        shown = "none" if value is None else json.dumps(value)
        found = written[key].strip("`").replace(",", "")
        assert found in (shown, shown.removesuffix(".0")), f"the default of {key} is {shown}"


def test_options_go_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "data.toml"
    file.write_text('listen = "127.0.0.1:0"\nfolder = "elsewhere"\nretention_s = 60\n')
    settings = changed(load_settings(file), folder="here", broker=None)
    assert (settings.listen, settings.folder, settings.retention_s) == ("127.0.0.1:0", "here", 60)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lisen = 1", "unknown field `lisen`"),
        ('listen = "nowhere"', "nowhere"),
        ('broker = "http://127.0.0.1:1"', "http://127.0.0.1:1"),
        ('master = "yarn"', "'yarn' is not a Spark master"),
        ("waiting_bytes_max = 1", "65536"),
        ("interval_s = -1", "interval_s"),
        ("folder = ", "data.toml"),
    ],
)
def test_nonsense_is_refused_by_name(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "data.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=says):
        load_settings(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        load_settings(tmp_path / "none.toml")
