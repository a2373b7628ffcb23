"""docs/faults.md names tests and kinds of faults that exist, and every kind of fault."""

from __future__ import annotations

import re
from pathlib import Path

from godwit.testing.nemesis.fault_kinds import NETWORK_KINDS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "faults.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")][2:]


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[^`]+)`", PAGE)
    assert named
    missing = [name for name in named if not (ROOT / name.partition("::")[0]).exists()]
    assert not missing


def test_every_fault_has_a_proof() -> None:
    assert ROWS
    for row in ROWS:
        proof = row.split(" | ")[-1]
        assert "`tests/" in proof or "nemesis `" in proof, row


def test_every_kind_of_fault_is_in_the_table() -> None:
    proofs = " ".join(row.split(" | ")[-1] for row in ROWS)
    named = set(re.findall(r"`([a-z-]+)`", proofs))
    assert {kind.value for kind in NETWORK_KINDS} <= named


def test_functions_that_are_named_exist() -> None:
    for name in re.findall(r"`(tests/[^`]+::\w+)`", PAGE):
        path, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / path).read_text(), name
