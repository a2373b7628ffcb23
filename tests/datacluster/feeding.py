"""A data cluster with one dataset that obeys commands on its input, until it is killed.

python -m tests.datacluster.feeding <folder>

take <first> <count>    these records of two sources; answered when they are accepted
finish                  answered when all that was accepted is in the dataset
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.datacluster.stating import dataset_statement

from godwit.datacluster.catalog import Catalog
from godwit.datacluster.datasets.compaction import CompactionSettings
from godwit.datacluster.datasets.dataset_service import DatasetService, DatasetSettings
from godwit.datacluster.datasets.housekeeping import HousekeepingSettings
from godwit.datacluster.datasets.inbox import Incoming
from godwit.datacluster.datasets.ingestion import IngestionSettings
from godwit.datacluster.datasets.storage import Storage
from godwit.datacluster.log.feed_log import LogSettings
from godwit.spark.session import spark_session
from godwit.spark.supervised import SupervisedSpark

#: Small limits and short intervals.
SETTINGS = DatasetSettings(
    log=LogSettings(segment_bytes=20_000),
    ingestion=IngestionSettings(interval_s=0.0, retry_s=0.2, rows_max=500),
    housekeeping=HousekeepingSettings(
        interval_s=0.1, grace_s=0.0, compaction=CompactionSettings(fan_in=3)
    ),
)


def record(n: int) -> Iterator[Incoming]:
    """One record of each source; some are malformed."""
    for source in ("a", "b"):
        content: dict[str, object] = {
            "source": source,
            "n": n if n % 7 else "bad",
            "text": "x" * 80,
        }
        yield Incoming(source, n, content, float(n))


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(master: str, folder: Path) -> None:
    spark = spark_session(master, application="feeding", for_small=True)
    storage = Storage(SupervisedSpark(lambda: spark), Catalog(folder), folder)
    arrived = threading.Event()
    landing = DatasetService(
        storage,
        on_batch=lambda _, __: arrived.set(),
        horizon=storage.last_batch,
        settings=SETTINGS,
    )
    if not storage.definitions.all():
        text = "CREATE DATASET Reports (source STRING, n BIGINT, text STRING)"
        landing.execute(dataset_statement(text))
    inbox = landing.inbox("Reports")
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    say(f"ready {gateway.proc.pid} {inbox.marks.get('sent', 0)}")
    for line in sys.stdin:
        match line.split():
            case ["take", first, count]:
                numbers = range(int(first), int(first) + int(count))
                taken = inbox.take([r for n in numbers for r in record(n)], {"sent": numbers[-1]})
                say(f"taken {taken.accepted} {taken.rejected} {taken.duplicates}")
            case ["finish"]:
                while inbox.waiting_bytes:
                    arrived.wait(0.1)
                break
    landing.close()
    storage.close()
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    spark.stop()
    say(f"finished {executors}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
