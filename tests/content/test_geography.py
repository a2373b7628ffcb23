"""Places on earth: their limits, their form on the wire, and the distances between them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from godwit.content.geography import GeoPoint, distance_m, distances_m, plane_distance_m
from godwit.errors import UsageError

HELSINKI, TALLINN = GeoPoint(60.1699, 24.9384), GeoPoint(59.4370, 24.7536)
ORIGIN, ANTIPODE = GeoPoint(0, 0), GeoPoint(0, 180)


def test_great_circles() -> None:
    assert distance_m(HELSINKI, TALLINN) == pytest.approx(82_200, rel=0.01)
    assert distance_m(ORIGIN, ANTIPODE) == pytest.approx(20_015_115, rel=1e-6)
    assert distance_m(HELSINKI, HELSINKI) == 0.0


def test_great_circles_over_arrays_are_the_same() -> None:
    pairs = [(HELSINKI, TALLINN), (ORIGIN, ANTIPODE), (TALLINN, TALLINN), (ANTIPODE, HELSINKI)]
    degrees = np.array(
        [(a.latitude, a.longitude, b.latitude, b.longitude) for a, b in pairs], dtype=np.float64
    )

    found = distances_m(*degrees.T)

    assert found.tolist() == pytest.approx([distance_m(a, b) for a, b in pairs], rel=1e-12)


def test_a_plane_is_good_enough_for_streets() -> None:
    corner = GeoPoint(60.171, 24.940)
    assert plane_distance_m(HELSINKI, corner) == pytest.approx(
        distance_m(HELSINKI, corner), rel=1e-5
    )


@pytest.mark.parametrize("degrees", [(90.1, 0.0), (0.0, 180.1), (float("nan"), 0.0)])
def test_places_that_are_not_on_earth(degrees: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="latitudes"):
        GeoPoint(*degrees)


def test_on_the_wire() -> None:
    """A JSON object; an error names the field."""
    text = b'{"latitude":60.1699,"longitude":24.9384}'
    assert msgspec.json.encode(HELSINKI) == text
    assert msgspec.json.decode(text, type=GeoPoint) == HELSINKI
    with pytest.raises(msgspec.ValidationError, match=r"<= 90.0 - at `\$.latitude`"):
        msgspec.json.decode(b'{"latitude":91,"longitude":0}', type=GeoPoint)
    with pytest.raises(msgspec.ValidationError, match="unknown field `altitude`"):
        msgspec.json.decode(b'{"latitude":1,"longitude":0,"altitude":3}', type=GeoPoint)
