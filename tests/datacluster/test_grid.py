"""Cells: a point in a box shares exactly one cell with it (G1)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp
from tests.datacluster.channel_kinds import metres

from godwit.datacluster.sql import grid
from godwit.datacluster.sql.expressions import column, real

EXTREME = [0.0, -0.0, 1e300, -1e300, 2.0**100, 5e-324, 2.0**-40, 180.0, -180.0]


def number(random: Random) -> float:
    if random.random() < 0.2:
        return random.choice(EXTREME)
    return random.uniform(-1, 1) * 10.0 ** random.randrange(-12, 13)


def test_ranges_and_their_points(spark: SparkSession) -> None:
    random = Random(1)
    pairs = []
    for _ in range(3_000):
        low = number(random)
        high = low + abs(number(random)) * random.choice([0.0, 1.0, 1e-9])
        point = random.choice([low, high, (low + high) / 2, number(random)])
        pairs.append({"low": low, "high": high, "x": point})
    box = grid.between([column("low", "p"), column("high", "p")])
    shared = _shared(spark, pairs, box, [grid.bounded(column("x", "p"))], grid.level_of(box))
    is_inside = [pair["low"] <= pair["x"] <= pair["high"] for pair in pairs]
    assert {count for count, inside in zip(shared, is_inside, strict=True) if inside} == {1}
    assert set(shared) <= {0, 1}
    assert 0 in shared


@pytest.mark.parametrize("radius_m", [1.0, 300.0, 5_000.0, 300_000.0, 15_000_000.0, 3e7])
@pytest.mark.parametrize("is_constant", [True, False])
def test_places_near_each_other(spark: SparkSession, radius_m: float, is_constant: bool) -> None:
    random = Random(int(radius_m))
    pairs = [_two_places(random, radius_m) for _ in range(1_000)]
    radius = real(radius_m).this if is_constant else column("radius", "p")
    here = grid.place(column("lat", "p"), column("lon", "p"))
    there = grid.place(column("lat2", "p"), column("lon2", "p"))
    level = grid.level_near(radius)
    shared = _shared(spark, pairs, grid.around(here, radius), there, level)
    inside = [metres(pair, {"lat": pair["lat2"], "lon": pair["lon2"]}) < radius_m for pair in pairs]
    assert {count for count, is_in in zip(shared, inside, strict=True) if is_in} == {1}
    assert set(shared) <= {0, 1}


def test_distance(spark: SparkSession) -> None:
    random = Random(3)
    pairs = [_two_places(random, 10.0 ** random.randrange(8)) for _ in range(1_000)]
    places = [column(name, "p") for name in ("lat", "lon", "lat2", "lon2")]
    sql = grid.distance(*places).sql("spark")
    measured = _frame(spark, pairs).selectExpr(f"{sql} AS metres").toArrow()["metres"].to_pylist()
    for pair, metres_measured in zip(pairs, measured, strict=True):
        expected = metres(pair, {"lat": pair["lat2"], "lon": pair["lon2"]})
        assert metres_measured == pytest.approx(expected, rel=1e-6, abs=1e-2), pair


def _two_places(random: Random, apart_m: float) -> dict[str, float]:
    """About as far apart, often at a pole or the date line."""
    lat = random.choice([random.uniform(-90, 90), 89.9999, -90.0, 0.0])
    lon = random.choice([random.uniform(-180, 180), 179.9999, -180.0])
    step = random.uniform(-2, 2) * apart_m / 111_195
    other = max(-90.0, min(90.0, lat + step))
    lon2 = (lon + random.uniform(-2, 2) * apart_m / 111_195 + 180) % 360 - 180
    return {"lat": lat, "lon": lon, "lat2": other, "lon2": lon2, "radius": apart_m}


def _frame(spark: SparkSession, pairs: list[dict[str, float]]) -> DataFrame:
    frame: DataFrame = spark.createDataFrame(pa.Table.from_pylist(pairs))
    return frame.alias("p")


def _shared(
    spark: SparkSession,
    pairs: list[dict[str, float]],
    box: Sequence[grid.GridInterval],
    point: Sequence[exp.Expr],
    level: exp.Expr,
) -> list[int]:
    """How many cells of its box each point is in."""
    cells, cell = grid.cells(box, level).sql("spark"), grid.cell(point, level).sql("spark")
    counted = _frame(spark, pairs).selectExpr(f"size(filter({cells}, c -> c = {cell})) AS n")
    counts: list[int] = counted.toArrow()["n"].to_pylist()
    return counts
