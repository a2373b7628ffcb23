"""One Spark session for all tests of the lab, and the traces of three small runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.lab.runs import SEEDS, trace_run
from tests.spark import spark

__all__ = ["spark"]


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The folders of the traced runs, by seed."""
    return {seed: trace_run(tmp_path_factory.mktemp(f"seed{seed}"), seed) for seed in SEEDS}
