"""The examples are run, and print what they are there to show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

PRINTED = {
    "channels.py": """\
alice received {'room': 'kitchen', 'celsius': 24.5}
alice, at another broker, received {'room': 'kitchen', 'celsius': 27.0}
the hall shows [{'room': 'kitchen', 'celsius': 27.0}]
"""
}


def test_every_example_is_run() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_shows(name: str) -> None:
    done = subprocess.run(  # noqa: S603  our own text
        [sys.executable, EXAMPLES / name],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.stdout == PRINTED[name], done.stderr
    assert done.returncode == 0
