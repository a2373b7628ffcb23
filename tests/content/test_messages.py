"""Which publications are control publications, and which filters ask for them."""

from __future__ import annotations

import pytest

from godwit.content.filters import Filter
from godwit.content.messages import is_control_content, is_control_filter


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        pytest.param("class = '$LOAD'", True, id="names one"),
        pytest.param("class in ('$LOAD','$PING') and x > 1", True, id="names several"),
        pytest.param("class starts with '$'", True, id="all of them"),
        pytest.param("class = 'STOCK'", False, id="another class"),
        pytest.param("class in ('$LOAD','STOCK')", False, id="both kinds: sees the others"),
        pytest.param("class in ('$LOAD',5)", False, id="a number is no control class"),
        pytest.param("class contains 'LOAD'", False, id="a pattern that others match too"),
        pytest.param("class is present", False, id="any class"),
        pytest.param("x > 1", False, id="no class"),
    ],
)
def test_a_filter_asks_for_control_publications_by_naming_their_class(
    filter: str, expected: bool
) -> None:
    assert is_control_filter(Filter.parse(filter)) is expected


def test_a_class_that_starts_with_a_dollar_is_a_control_class() -> None:
    assert is_control_content({"class": "$LOAD"})
    assert not is_control_content({"class": "STOCK"})
    assert not is_control_content({"class": 5})
    assert not is_control_content({"x": "$LOAD"})
