"""Road maps and who moves on them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from godwit.content.geography import GeoPoint, plane_distance_m
from godwit.errors import UsageError
from godwit.workloads.road_files import open_roads, read_roads
from godwit.workloads.roads import (
    RoadMap,
    Walker,
    kkj_place,
    street_grid,
    walkers,
)

HELSINKI = Path(__file__).parents[3] / "shared" / "data" / "helsinki_roads.wkt"
needs_helsinki = pytest.mark.skipif(not HELSINKI.exists(), reason="the map is not here")

A, B, C, D = (GeoPoint(60.0, 24.0 + n / 1000) for n in range(4))


def test_kkj_is_turned_into_degrees() -> None:
    """On the central meridian, and 52 km east of it; as an inverse projection by hand has it."""
    assert kkj_place(2_500_000.0, 0.0) == GeoPoint(0.0, 24.0)
    there = kkj_place(2_552_469.0, 6_672_680.0)
    assert there.latitude == pytest.approx(60.1622, abs=0.0005)
    assert there.longitude == pytest.approx(24.9449, abs=0.0005)
    north, south = kkj_place(2_500_000.0, 6_673_000.0), kkj_place(2_500_000.0, 6_672_000.0)
    assert plane_distance_m(south, north) == pytest.approx(1000, rel=0.003)


def test_of_a_map_in_pieces_the_largest_is_kept() -> None:
    far = [GeoPoint(61.0, 24.0), GeoPoint(61.0, 24.1)]
    roads = RoadMap([[A, B], far, [B, C], [C, C], [C, D]])

    assert set(roads.places) == {A, B, C, D}
    assert roads.neighbours[B] == (A, C)


def test_a_map_needs_a_road() -> None:
    with pytest.raises(UsageError, match="needs at least one road"):
        RoadMap([[A], [B, B]])


def test_a_walker_keeps_its_speed_and_turns_at_dead_ends() -> None:
    length_m = plane_distance_m(A, B)
    walker = Walker(RoadMap([[A, B]]), Random(1), length_m / 4)

    longitudes = [walker.step().longitude for _ in range(8)]

    steps = [abs(b - a) for a, b in pairwise(longitudes)]
    assert steps == pytest.approx([0.00025] * 7)
    assert {round(x, 5) for x in longitudes} == {24.0, 24.00025, 24.0005, 24.00075, 24.001}


def test_at_a_crossing_a_walker_goes_on() -> None:
    """Only at the dead ends A and D does it turn round."""
    walker = Walker(RoadMap([[A, B, C, D]]), Random(3), plane_distance_m(A, B))
    seen = [round((walker.step().longitude - 24.0) * 1000) for _ in range(13)]

    assert all(abs(b - a) == 1 for a, b in pairwise(seen))
    turns = [
        at for before, at, after in zip(seen, seen[1:], seen[2:], strict=False) if before == after
    ]
    assert set(turns) == {0, 3}


def test_a_street_grid() -> None:
    roads = street_grid(4, 3, 100.0)

    assert len(roads.places) == 5 * 4
    assert {len(around) for around in roads.neighbours.values()} == {2, 3, 4}
    for place, around in roads.neighbours.items():
        for other in around:
            assert plane_distance_m(place, other) == pytest.approx(100.0, rel=0.001)


def test_the_same_seed_gives_the_same_walk() -> None:
    def walk(seed: int) -> list[GeoPoint]:
        return [each.step() for each in walkers(street_grid(), Random(seed), 5, (1.0, 2.0))]

    assert walk(1) == walk(1) != walk(2)


def test_a_file_of_roads_with_a_line_that_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "roads.wkt"
    path.write_text(
        "LINESTRING (2553179.3 6674191.9, 2553177.2\n 6674217.6)\n\n"
        "LINESTRING (2553177.2 6674217.6, 2553204.7 6674219.9)\n"
    )

    assert len(open_roads(path).places) == 3
    assert len(open_roads(None).places) == len(street_grid().places)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("POINT (1 2)", "line 2: not a LINESTRING", id="no line"),
        pytest.param("LINESTRING (2553179 6674191)", "two points or more (W1)", id="one point"),
        pytest.param("LINESTRING (2553179 x, 1 2)", "not two numbers (W2)", id="no number"),
        pytest.param("LINESTRING (24.9 60.1, 24.8 60.2)", "not in Finland (W2)", id="degrees"),
        pytest.param("LINESTRING (nan nan, 1 2)", "not in Finland (W2)", id="nan"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_rule(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "roads.wkt"
    path.write_text(f"LINESTRING (2553177 6674217, 2553204 6674219)\n{text}\n")

    with pytest.raises(UsageError) as raised:
        read_roads(path)
    assert complaint in str(raised.value)
    assert str(path) in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_roads(tmp_path / "absent.wkt")
    (tmp_path / "bytes.wkt").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read as a road map"):
        read_roads(tmp_path / "bytes.wkt")


@needs_helsinki
def test_the_map_of_helsinki() -> None:
    roads = read_roads(HELSINKI)

    assert len(roads.places) > 5000
    assert all(60.14 < p.latitude < 60.22 and 24.84 < p.longitude < 25.0 for p in roads.places)
