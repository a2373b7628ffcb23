"""Random histories of an inbox: batches, duplicates, malformed records, full logs, crashes.

A crash leaves a part of the last write on the disk.  Senders repeat what was not acknowledged, and
sometimes more.  In the end both logs hold each record once, and those of each source in order.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest
from tests.datacluster.boxes import held, open_inbox

from godwit.datacluster.datasets.inbox import Inbox, Incoming
from godwit.datacluster.log.feed_log import FeedLog, LogSettings
from godwit.datacluster.log.log_frames import frames, segments
from godwit.datacluster.log.segments import FullError

SOURCES = ("one", "two", "three")
STEPS = 60


class History:
    """An inbox, its senders, and what ingestion has read from it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = Random(seed)
        segment_bytes = self.random.choice([1, 2_000, 1_000_000])
        self.settings = LogSettings(waiting_bytes_max=6_000, segment_bytes=segment_bytes)
        self.folder = folder / "0"
        self.crashes = 0
        self.sent: dict[str, list[Incoming]] = {source: [] for source in SOURCES}
        self.acknowledged = dict.fromkeys(SOURCES, 0)
        self.ingested: dict[str, list[tuple[int, object]]] = {"log": [], "quarantine": []}
        self.open()

    def open(self) -> None:
        self.inbox: Inbox
        self.inbox, log, quarantine = open_inbox(self.folder, self.settings)
        self.logs: dict[str, FeedLog] = {"log": log, "quarantine": quarantine}
        for name, each in self.logs.items():
            each.ingested(len(self.ingested[name]))

    def step(self) -> None:
        action = self.random.choices([self.send, self.ingest, self.crash], [6, 3, 1])[0]
        action()

    def send(self) -> None:
        """New records of a source, after those that were not acknowledged and some that were."""
        source = self.random.choice(SOURCES)
        sent = self.sent[source]
        for _ in range(self.random.randrange(4)):
            n = len(sent) + 1
            bad = self.random.random() < 0.2
            content = {"n": "bad" if bad else n, "text": f"{source} {n}"}
            sent.append(Incoming(source, n, content, float(n)))
        again = self.random.choice([0, 0, 1, 3])
        records = sent[max(0, self.acknowledged[source] - again) :]
        marks = {source: len(sent)}
        try:
            taken = self.inbox.take(records, marks)
        except FullError:
            return
        assert taken.accepted + taken.rejected + taken.duplicates == len(records)
        self.acknowledged[source] = len(sent)
        assert self.inbox.marks[source] == len(sent)

    def ingest(self) -> None:
        for name, column in (("log", "text"), ("quarantine", "record")):
            done = len(self.ingested[name])
            there = held(self.folder / name, column)
            self.ingested[name] += [each for each in there if each[0] > done]
            self.logs[name].ingested(len(self.ingested[name]))

    def crash(self) -> None:
        """Between or within writes: the last bytes of one log did not get to the disk."""
        before = {name: segments(self.folder / name)[-1] for name in self.logs}
        safe = {name: (path, path.stat().st_size) for name, path in before.items()}
        acknowledged = dict(self.acknowledged)
        self.send()
        for log in self.logs.values():
            log.close()
        self.crashes += 1
        copy = self.folder.with_name(str(self.crashes))
        shutil.copytree(self.folder, copy)
        # The quarantine's log is written first: either it is torn and the other one untouched,
        # or it is whole and the other one torn.
        torn = self.random.choice(list(safe))
        for name, (path, size_bytes) in safe.items():
            if torn in (name, "quarantine"):
                self._tear(copy / name, path.name, size_bytes, untouched=name != torn)
        self.acknowledged = acknowledged
        self.folder = copy
        self.open()

    def _tear(self, folder: Path, name: str, safe_bytes: int, *, untouched: bool) -> None:
        path = segments(folder)[-1]
        if path.name != name:
            safe_bytes = next(frames(path)).size_bytes  # A segment always has its head.
        kept = safe_bytes if untouched else self.random.randint(safe_bytes, path.stat().st_size)
        with path.open("r+b") as file:
            file.truncate(kept)

    def finish(self) -> None:
        for _ in range(3):
            self.ingest()
            for source in SOURCES:
                records = self.sent[source][self.acknowledged[source] :]
                self.inbox.take(records)
                self.acknowledged[source] = len(self.sent[source])
                self.ingest()


@pytest.mark.parametrize("seed", range(40))
def test_in_the_end_everything_is_there_once_and_in_order(tmp_path: Path, seed: int) -> None:
    history = History(tmp_path, seed)
    for _ in range(STEPS):
        history.step()
    history.finish()
    assert history.crashes or seed
    for name in ("log", "quarantine"):
        found = history.ingested[name]
        assert [position for position, _ in found] == list(range(1, len(found) + 1))
        texts = [str(text) for _, text in found]
        for source, sent in history.sent.items():
            is_bad = name == "quarantine"
            wanted = [
                f"{source} {each.sequence}"
                for each in sent
                if isinstance(each.content, dict) and (each.content["n"] == "bad") is is_bad
            ]
            of_source = [text for text in texts if f"{source} " in text]
            assert len(of_source) == len(wanted)
            for text, expected in zip(of_source, wanted, strict=True):
                assert expected in text
