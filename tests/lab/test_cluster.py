"""Metrics and a plan on a real standalone cluster, a master and two workers: the same, unchanged.

The sums of a cluster are added up in the order in which its parts are ready, so their last digit
may differ.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tests.cluster import standalone
from tests.lab.collecting import collected, large_plan
from tests.lab.plain import assert_same
from tests.sweeps import in_sweeps

ROOT = Path(__file__).parents[2]


@in_sweeps  # tests/live/test_datacluster.py has a cluster, too.
def test_a_cluster_says_what_one_process_says(
    spark: SparkSession, traces: dict[int, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    with standalone(tmp_path) as master:
        program = (sys.executable, "-m", "tests.lab.collecting")
        ran = subprocess.run(  # noqa: S603  Our own.
            [*program, master, str(traces[1]), str(out)],
            cwd=ROOT, capture_output=True, text=True,
            timeout=400, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
    found = json.loads(out.read_text())
    assert found["master"] == master
    assert found["executors"] == 2
    # As JSON has it: links are lists there.
    assert found["plan"] == json.loads(json.dumps(large_plan(spark)))
    expected = collected(spark, traces[1])
    assert found["metrics"].keys() == expected.keys()
    for name, rows in expected.items():
        assert_same(found["metrics"][name], rows)
