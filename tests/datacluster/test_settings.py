"""What can be set for the data cluster: every key is explained, and nonsense is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.config import changed
from godwit.datacluster.settings import DataClusterSettings, load_settings
from godwit.errors import UsageError

MANUAL = Path(__file__).parents[2] / "docs" / "datacluster.md"


def test_the_manual_explains_every_key() -> None:
    manual = MANUAL.read_text()
    for key in DataClusterSettings.__struct_fields__:
        assert f"| `{key}` |" in manual, f"docs/datacluster.md does not explain {key}"


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
        ('master = "yarn"', "'yarn' is no master"),
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
