"""The mutants of benchmarks/mutants.py can be made of the sources as they are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from benchmarks.mutants import MUTANTS, SOURCES, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_another_program(mutant: Mutant, tmp_path: Path) -> None:
    mutant.make(tmp_path)
    for edit in mutant.edits:
        made = (tmp_path / "godwit" / edit.path).read_text()
        assert ast.dump(ast.parse(made)) != ast.dump(
            ast.parse((SOURCES / "godwit" / edit.path).read_text())
        )
