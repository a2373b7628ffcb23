"""Random histories: people come and go, records arrive, the process dies and starts anew.

The results of every execution are what plain Python says of the datasets and subscriptions at the
moment when it was planned: nothing is missing, and nothing is there twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.datacluster.channel_kinds import (
    CENTRES,
    KINDS,
    TYPES,
    USERS,
    Kind,
    Row,
    World,
    random_place,
)
from tests.datacluster.faulty_channels import STEPS, Crash, CrashingChannels, Step
from tests.datacluster.memory_snapshots import REPORTS, SHELTERS, MemorySnapshots, Record
from tests.datacluster.memory_snapshots import USERS as USERS_DATASET
from tests.datacluster.small_cluster import (
    SETTINGS,
    START,
    grant,
    notices,
    stored,
    unsubscribe,
)
from tests.datacluster.stating import channel_statement
from tests.sweeps import seeds

from godwit.datacluster.catalog import Catalog
from godwit.spark.supervised import SupervisedSpark

BROKERS = ("A", "B", "C")
EXECUTIONS = 3
CHANNEL = "Watched"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@dataclass
class Planned:
    """What an execution is to give: of each subscription that was in force, its rows."""

    number: int
    rows: dict[int, list[Row]]


@dataclass
class Model:
    """What ought to be, kept by hand."""

    held: dict[tuple[str, int], int] = field(default_factory=dict)
    arguments: dict[int, Mapping[str, object]] = field(default_factory=dict)
    seen: int = 0
    planned: Planned | None = None
    done: list[Planned] = field(default_factory=list)

    @property
    def in_force(self) -> set[int]:
        return {id for _, id in self.held}

    @property
    def last_number(self) -> int:
        return len(self.done) + (self.planned is not None)


class History:
    def __init__(self, spark: SparkSession, folder: Path, kind: Kind, seed: int) -> None:
        self.random = Random(seed)
        self.kind = kind
        self.centre = self.random.choice(CENTRES)
        self.spark = spark
        self.folder = folder
        self.snapshots = MemorySnapshots(spark, REPORTS, USERS_DATASET, SHELTERS)
        self.snapshots.load(
            "Shelters",
            [{"name": f"s{n}", "type": "x"} | self._place() for n in range(6)],
        )
        self.model = Model()
        self.serial = 0
        self._ingest()  # Before there is a channel: not new to it.
        self.model.seen = self.snapshots.last_batch("Reports")
        self.channels = self._open()
        text = f"CREATE CHANNEL {CHANNEL}({kind.parameters}) EVERY 10 SECONDS AS {kind.query}"
        self.channels.apply(channel_statement(text), now_s=0.0)

    def run(self) -> None:
        while len(self.model.done) < EXECUTIONS:
            for _ in range(self.random.randrange(4)):
                self._subscribe()
            if self.random.random() < 0.5:
                self._unsubscribe()
            if self.random.random() < 0.8:
                self._ingest()
            self._execute(self.random.choice([None, None, None, *STEPS]))
        self._check()
        self.channels.close()
        self.catalog.close()

    # -- steps ---------------------------------------------------------------------------------

    def _open(self) -> CrashingChannels:
        self.catalog = Catalog(self.folder)
        return CrashingChannels(
            SupervisedSpark(lambda: self.spark),
            self.catalog,
            self.snapshots,
            self.folder,
            settings=SETTINGS,
        )

    def _subscribe(self) -> None:
        broker = self.random.choice(BROKERS)
        arguments = self.kind.arguments(self.random, self.centre)
        granted = grant(self.channels, broker, CHANNEL, arguments)
        assert granted.id is not None, granted.error
        assert granted.start == (self.model.last_number + 1, 0)
        same = [id for id in self.model.in_force if self.model.arguments[id] == arguments]
        if same:
            assert [granted.id] == same, "equal arguments are one subscription"
        else:
            assert granted.id not in self.model.arguments, "ids are not used again"
        self.model.arguments[granted.id] = arguments
        self.model.held.setdefault((broker, granted.id), self.model.last_number)

    def _unsubscribe(self) -> None:
        if self.model.held:
            broker, id = self.random.choice(sorted(self.model.held))
            unsubscribe(self.channels, broker, id)
            del self.model.held[broker, id]

    def _ingest(self) -> None:
        self.snapshots.append("Reports", [self._report() for _ in range(self.random.randrange(9))])
        moved = self.random.sample(USERS, self.random.randrange(len(USERS)))
        self.snapshots.append("Users", [{"user_id": user} | self._place() for user in moved])

    def _report(self) -> Record:
        self.serial += 1
        severity = self.random.choice([0.0, 0.25, 0.5, 1.0, 2.5, 7.0])
        type = self.random.choice(TYPES)
        return {"id": self.serial, "type": type, "severity": severity, "at": NOON} | self._place()

    def _place(self) -> dict[str, object]:
        return random_place(self.random, self.centre)

    def _execute(self, crash_after: Step | None) -> None:
        """Once, and if it crashes, the process starts anew."""
        model = self.model
        last = self.snapshots.last_batch("Reports")
        if model.planned is None and self._is_something_new():
            model.planned = Planned(len(model.done) + 1, self._expected(last))
            model.seen = last
            self.users_seen = self.snapshots.last_batch("Users")
        self.channels.crash_after = crash_after
        try:
            outcome = self.channels.execute(CHANNEL, now_s=10.0)
        except Crash:
            self.catalog.close()
            self.channels.close()
            self.channels = self._open()
            if crash_after != "committed":
                return
        else:
            assert (outcome is None) == (model.planned is None)
            assert outcome is None or (outcome.error, outcome.state) == (None, "done")
        if model.planned is not None:
            model.done.append(model.planned)
            model.planned = None

    def _is_something_new(self) -> bool:
        if self.snapshots.last_batch("Reports") > self.model.seen:
            return True
        return "Users" in self.kind.query and (
            self.snapshots.last_batch("Users") > getattr(self, "users_seen", 1)
        )

    def _expected(self, last: int) -> dict[int, list[Row]]:
        world = World(
            self.snapshots.new_records("Reports", after=self.model.seen, through=last),
            self.snapshots.records("Reports", through=last),
            self.snapshots.records("Users", through=self.snapshots.last_batch("Users")),
            self.snapshots.records("Shelters", through=0),
        )
        return {
            id: self.kind.expected(self.model.arguments[id], world) for id in self.model.in_force
        }

    # -- what came out -------------------------------------------------------------------------

    def _check(self) -> None:
        got = self._pulled()
        for planned in self.model.done:
            for id in self.model.arguments:
                rows = got.pop((id, planned.number), [])
                expected = planned.rows.get(id, [])
                assert sorted(rows, key=repr) == sorted(expected, key=repr), (
                    f"subscription {id} {self.model.arguments[id]}, execution {planned.number}"
                )
        assert not got, "results of executions that never were"
        for broker in BROKERS:
            told = [
                (notice.execution, notice.subscriptions)
                for notice in notices(self.channels, broker).notices
            ]
            assert told == self._expected_notices(broker)

    def _expected_notices(self, broker: str) -> list[tuple[int, list[int]]]:
        """Executions since the broker holds a subscription, with results for it."""
        held = {id: after for (holder, id), after in self.model.held.items() if holder == broker}
        expected = []
        for planned in self.model.done:
            concerned = {id for id, after in held.items() if after < planned.number}
            ids = sorted(id for id in concerned if planned.rows.get(id))
            if ids:
                expected.append((planned.number, ids))
        return expected

    def _pulled(self) -> dict[tuple[int, int], list[Row]]:
        """Everything, a few rows at a time."""
        starts = dict.fromkeys(self.model.arguments, START)
        got: dict[tuple[int, int], list[Row]] = defaultdict(list)
        end = (len(self.model.done) + 1, 0)
        while starts and set(starts.values()) != {end}:
            for id, pulled in stored(self.channels, starts, CHANNEL, limit_bytes=200).items():
                for results in pulled.results:
                    at = (id, results.execution)
                    assert results.first == len(got[at]), "rows of a subscription come in order"
                    got[at] += [tuple(row.values()) for row in results.rows]
                starts[id] = pulled.end
        return got


@pytest.mark.parametrize("seed", range(seeds(10, whole=100)))
def test_every_execution_gives_what_plain_python_says(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    kind = KINDS[seed % len(KINDS)]
    History(spark, tmp_path, kind, seed).run()
