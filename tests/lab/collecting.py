"""All metrics of a trace as plain data; as a program, on any master:

python -m tests.lab.collecting spark://127.0.0.1:7077 FOLDER OUT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.lab.plain import in_order
from tests.lab.runs import OVER

from godwit.lab.metrics import STAGES
from godwit.lab.metrics.reading import read_trace
from godwit.spark.session import spark_session


def all_metrics(session: SparkSession, folder: Path) -> dict[str, list[dict[str, Any]]]:
    trace = read_trace(session, folder)
    return {
        name: in_order([row.asDict() for row in stage(trace, OVER).collect()])
        for name, stage in STAGES.items()
    }


def main() -> None:
    master, folder, out = sys.argv[1:]
    session = spark_session(master, for_small=True)
    metrics = all_metrics(session, Path(folder))
    context = session.sparkContext
    # The driver is listed among the executors.
    executors = context._jsc.sc().getExecutorMemoryStatus().size() - 1
    found = {"master": context.master, "executors": executors, "metrics": metrics}
    Path(out).write_text(json.dumps(found))
    session.stop()


if __name__ == "__main__":
    main()
