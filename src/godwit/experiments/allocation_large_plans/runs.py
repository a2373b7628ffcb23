"""How `allocation-large-plans` is run: a plan is made; nothing is deployed."""

from __future__ import annotations

from pathlib import Path

from godwit.experiments.allocation.expected_state import expected_of
from godwit.experiments.allocation.measures import predicted
from godwit.experiments.allocation.plan_notes import numbers_of, write_numbers
from godwit.experiments.allocation.runs import planned_of
from godwit.experiments.allocation.setups import setup_of
from godwit.lab.declaration import Case, Trace


def run(case: Case, seed: int, folder: Path) -> None:
    gathered = expected_of(setup_of(case), seed)
    write_numbers(numbers_of(planned_of(gathered, case, seed), gathered), folder)


def measure(trace: Trace, _case: Case) -> dict[str, float]:
    _, found = predicted(trace)
    return found
