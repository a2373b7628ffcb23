"""The same pipeline on a real standalone cluster: a master and two workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cluster import IN_HASTE, standalone
from tests.datacluster.landed_files import check

ROOT = Path(__file__).parents[2]


def test_records_get_into_a_dataset_on_a_cluster(tmp_path: Path) -> None:
    takes = [f"take {first} 100" for first in range(1, 2_000, 100)]
    with standalone(tmp_path) as master:
        command = [sys.executable, "-m", "tests.datacluster.feeding", master]
        ran = subprocess.run(  # noqa: S603  Our own.
            [*command, str(tmp_path / "cluster")],
            input="\n".join([*takes, "finish\n"]), cwd=ROOT, env={**os.environ, **IN_HASTE},
            capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
    answers = ran.stdout.splitlines()
    assert answers.count("taken 172 28 0") + answers.count("taken 170 30 0") == len(takes)
    assert answers[-1] == "finished 2", "executors"
    check(tmp_path / "cluster", 2_000)
