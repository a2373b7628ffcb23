"""What can be set: every key is explained, and nonsense is refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from godwit.config import changed
from godwit.coordinator.settings import CoordinatorSettings, load_settings
from godwit.errors import UsageError
from godwit.policies.staged.initial import Placement
from godwit.policies.staged.planning import Strategy

MANUAL = Path(__file__).parents[2] / "docs" / "coordinator.md"


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "bcs.toml"
    file.write_text('placement = "least loaded"\nstrategy = "ldm"\nbeta = 3e6\ndry_run = true\n')
    settings = load_settings(file)
    assert settings.placement is Placement.LEAST_LOADED
    assert settings.strategy is Strategy.LDM
    assert (settings.thresholds.beta, settings.thresholds.shuffle_load) == (3e6, 3e6)
    assert settings.dry_run


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("speed = 3", "unknown field `speed`"),
        ('strategy = "best"', "'best'.*strategy"),
        ('placement = "here"', "'here'.*placement"),
        ("alpha = 0.9", "alpha 0.9, gamma 0.5"),
        ("alpha = -1", "alpha"),
        ("report_s = 0", "report_s"),
        ("moves_per_s = 0", "moves_per_s"),
        ('listen = "7500"', "HOST:PORT"),
        ("spark_from = 0", "spark_from"),
        ('spark_from = 10\nshuffle = "improved"', "spark_from: .*greedy.*not 'improved'"),
        ("listen", "bcs.toml"),
    ],
)
def test_nonsense(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "bcs.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=why):
        load_settings(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        load_settings(tmp_path / "none.toml")


def test_options_go_before_the_file() -> None:
    settings = changed(CoordinatorSettings(alpha=0.2), beta=5.0, alpha=None, strategy="ldm")
    assert (settings.alpha, settings.beta, settings.strategy) == (0.2, 5.0, Strategy.LDM)
    with pytest.raises(UsageError, match="hold_s"):
        changed(settings, hold_s=-1.0)


def test_the_manual_explains_every_key_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", MANUAL.read_text(), flags=re.MULTILINE))
    assert set(CoordinatorSettings.__struct_fields__) <= set(rows)
    defaults = CoordinatorSettings()
    for key in ("alpha", "gamma", "report_s", "hold_s", "moves_per_s", "move_timeout_s", "plan_s"):
        assert float(rows[key]) == getattr(defaults, key), key
