"""Metrics of a trace, and a plan of CRAM, as plain data; as a program, on any master:

python -m tests.lab.collecting spark://127.0.0.1:7077 FOLDER OUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

from msgspec import to_builtins
from pyspark.sql import SparkSession
from tests.lab.plain import in_order
from tests.lab.plans import LIMITS, market, planned
from tests.lab.runs import OVER
from tests.sweeps import IS_WHOLE

from godwit.lab.metrics import STAGES
from godwit.lab.metrics.reading import read_trace
from godwit.spark.session import spark_session

#: Each takes seconds on a cluster.
NAMES = list(STAGES)[:: 1 if IS_WHOLE else 5]


def collected(session: SparkSession, folder: Path) -> dict[str, list[dict[str, Any]]]:
    trace = read_trace(session, folder)
    return {
        name: in_order([row.asDict() for row in stage(trace, OVER).collect()])
        for name, stage in STAGES.items()
        if name in NAMES
    }


def large_plan(session: SparkSession) -> dict[str, Any]:
    plan: dict[str, Any] = to_builtins(planned(session, market(Random(3)), LIMITS).plan)
    return plan


def main() -> None:
    master, folder, out = sys.argv[1:]
    session = spark_session(master, for_small=True)
    metrics = collected(session, Path(folder))
    context = session.sparkContext
    # The driver is listed among the executors.
    executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1
    found = {
        "master": context.master,
        "executors": executors,
        "metrics": metrics,
        "plan": large_plan(session),
    }
    Path(out).write_text(json.dumps(found))
    session.stop()


if __name__ == "__main__":
    main()
