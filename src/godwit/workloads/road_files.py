"""Reads a road map from a file of WKT lines, as used by the ONE simulator.

    LINESTRING (2553179.33 6674191.97, 2553177.28 6674217.66, 2553204.73 6674219.92)

Coordinates are metres east and north in Finland's KKJ, zone 2 (ONE's Helsinki).  A violated rule
raises a UsageError with line and rule.

W1  The file has only LINESTRINGs of two points or more; white space is ignored.
W2  Coordinates are numbers within Finland.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from godwit.content.geography import GeoPoint
from godwit.errors import UsageError
from godwit.workloads.roads import RoadMap, kkj_place, street_grid

FILE_BYTES_MAX = 100_000_000
EAST_M, NORTH_M = (2_300_000.0, 2_800_000.0), (6_500_000.0, 7_900_000.0)
_LINE = re.compile(r"LINESTRING\s*\(([^()]+)\)\s*", re.IGNORECASE)


def read_roads(path: Path) -> RoadMap:
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise UsageError(f"{path}: a road map has at most {FILE_BYTES_MAX} bytes")
        return RoadMap(_roads(path.read_text(encoding="ascii"), path))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as a road map: {error}") from error


def open_roads(path: Path | None) -> RoadMap:
    """The roads of the file if one is given, otherwise a town of streets at right angles."""
    return street_grid() if path is None else read_roads(path)


def _roads(text: str, path: Path) -> Iterator[list[GeoPoint]]:
    at = len(text) - len(text.lstrip())
    while at < len(text):
        where = f"{path}, line {text.count(chr(10), 0, at) + 1}"
        found = _LINE.match(text, at)
        points = found[1].split(",") if found else []
        if found is None or len(points) < 2:
            raise UsageError(f"{where}: not a LINESTRING of two points or more (W1)")
        yield [_place(point, where) for point in points]
        at = found.end()


def _place(point: str, where: str) -> GeoPoint:
    try:
        east_m, north_m = map(float, point.split())
    except ValueError:
        raise UsageError(f"{where}: {point.strip()!r} is not two numbers (W2)") from None
    if not (EAST_M[0] <= east_m <= EAST_M[1] and NORTH_M[0] <= north_m <= NORTH_M[1]):
        raise UsageError(f"{where}: {point.strip()!r} is not in Finland (W2)")
    return kkj_place(east_m, north_m)
