"""Which files are merged, and which expire: tables."""

from __future__ import annotations

import pytest

from godwit.datacluster.datasets.compaction import CompactionSettings, plan
from godwit.datacluster.datasets.files import StoredFile
from godwit.datacluster.datasets.retention import Retention, expired

SETTINGS = CompactionSettings(
    fan_in=3, level_bytes=10, file_bytes=1_000, fold_rows=40, fold_ratio=0.5
)


def files(*sizes: int, base_rows: int | None = None) -> list[StoredFile]:
    """One for each size, batch by batch, with as many rows as bytes; perhaps a base first."""
    base = [] if base_rows is None else [StoredFile("base", 0, 0, 0, base_rows, 9, 0.0, True)]
    return base + [
        StoredFile(str(batch), batch, batch, 0, size, size, float(batch))
        for batch, size in enumerate(sizes, start=1)
    ]


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([5, 5], None, id="too few"),
        pytest.param([5, 5, 5], "1 2 3", id="three small ones"),
        pytest.param([5, 5, 5, 5], "1 2 3", id="the first of more"),
        pytest.param([50, 5, 5, 5, 50], "2 3 4", id="the smallest first"),
        pytest.param([50, 5, 5, 50, 5], None, id="small ones that are not together wait"),
        pytest.param([50, 5, 50, 5, 50], "1 2 3 4 5", id="small ones between large ones go along"),
        pytest.param([5, 5, 2_000, 5, 5], None, id="one that is large enough is left alone"),
        pytest.param([2_000] * 5, None, id="so are many"),
    ],
)
def test_merging(sizes: list[int], merged: str | None) -> None:
    found = plan(files(*sizes), SETTINGS, fold_through=None)
    assert (None if found is None else " ".join(file.path for file in found.files)) == merged
    assert found is None or not found.is_fold


@pytest.mark.parametrize(
    ("sizes", "base_rows", "horizon", "folded"),
    [
        pytest.param([30, 30], None, 2, "1 2", id="the first base"),
        pytest.param([30, 30], None, 1, None, id="what is still needed is not folded"),
        pytest.param([30, 30], 50, 2, "base 1 2", id="into a small base"),
        pytest.param([30, 30], 200, 2, None, id="a large base waits for more"),
        pytest.param([30, 30, 30, 30], 200, 4, "base 1 2 3 4", id="until it is worth it"),
        pytest.param([30, 30, 30], 10, 2, "base 1 2", id="up to the horizon"),
    ],
)
def test_folding(sizes: list[int], base_rows: int | None, horizon: int, folded: str | None) -> None:
    found = plan(files(*sizes, base_rows=base_rows), SETTINGS, fold_through=horizon)
    is_fold = found is not None and found.is_fold
    assert (" ".join(f.path for f in found.files) if found and is_fold else None) == folded


@pytest.mark.parametrize(
    ("retention", "horizon", "gone"),
    [
        pytest.param(Retention(), 5, "", id="for ever"),
        pytest.param(Retention(age_s_max=2.0), 5, "1 2", id="by age"),
        pytest.param(Retention(age_s_max=2.0), 1, "1", id="not above the horizon"),
        pytest.param(Retention(size_bytes_max=25), 5, "1 2 3", id="by size"),
        pytest.param(Retention(size_bytes_max=25, age_s_max=1.0), 5, "1 2 3", id="by both"),
        pytest.param(Retention(size_bytes_max=0), 5, "1 2 3 4 5", id="everything"),
    ],
)
def test_retention(retention: Retention, horizon: int, gone: str) -> None:
    found = expired(files(10, 10, 10, 10, 10), retention, horizon=horizon, now_s=5.0)
    assert " ".join(file.path for file in found) == gone
