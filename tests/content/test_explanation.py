"""Explanations agree with matching, and read as sentences."""

from __future__ import annotations

from random import Random

import pytest
from tests.content import reference
from tests.content.reference import DOMAINS

from godwit.content.filters import Filter
from godwit.content.values import Value


@pytest.mark.parametrize("seed", range(6))
def test_a_record_matches_exactly_when_its_explanation_has_no_failure(seed: int) -> None:
    random = Random(seed)
    domain = DOMAINS[seed % len(DOMAINS)]
    cases = 0
    for _ in range(3_000):
        filter, record = Filter(domain.draw(random)), domain.draw_record(random)
        explanation = filter.explain(record)
        said = f"seed {seed}: {filter!r} on {record}"
        failing = [p for p in filter.predicates if not reference.matches([p], record)]
        assert [f.predicate for f in explanation.failures] == failing, said
        assert [f.predicate for f in explanation.findings] == list(filter.predicates), said
        assert [f.value for f in explanation.findings] == [
            record.get(p.attribute) for p in filter.predicates
        ], said
        assert explanation.matched == filter.matches(record), said
        cases += 1
    assert cases == 3_000


@pytest.mark.parametrize(
    ("text", "record", "said"),
    [
        pytest.param(
            "class = 'STOCK' and volume > 1000",
            {"class": "STOCK", "volume": 1001},
            [
                "matches",
                "class = 'STOCK' holds: class is 'STOCK'",
                "volume > 1000 holds: volume is 1001",
            ],
            id="a match shows every condition",
        ),
        pytest.param(
            "class = 'STOCK' and volume > 1000 and volume < 2000",
            {"class": "STOCK", "volume": 1000},
            ["does not match", "volume > 1000 fails: volume is 1000"],
            id="a mismatch shows only what failed",
        ),
        pytest.param(
            "class = 'STOCK' and volume > 1000",
            {"price": 5},
            [
                "does not match",
                "class = 'STOCK' fails: the event has no class",
                "volume > 1000 fails: the event has no volume",
            ],
            id="an absent attribute is named",
        ),
        pytest.param(
            "volume > 1000",
            {"volume": "1001"},
            ["does not match", "volume > 1000 fails: volume is '1001', a string"],
            id="a value of the wrong kind says its kind",
        ),
        pytest.param(
            "open is a number",
            {"open": True},
            ["does not match", "open is a number fails: open is true, a boolean"],
            id="a boolean is no number",
        ),
        pytest.param(
            "symbol in ('A',1)",
            {"symbol": 2},
            ["does not match", "symbol in ('A',1) fails: symbol is 2"],
            id="a list with numbers has nothing against a number",
        ),
        pytest.param(
            "symbol in ('A','B')",
            {"symbol": 2.5},
            ["does not match", "symbol in ('A','B') fails: symbol is 2.5, a number"],
            id="a list of strings wants a string",
        ),
        pytest.param(
            "symbol is present",
            {"symbol": False},
            ["matches", "symbol is present holds: symbol is false"],
            id="false is present",
        ),
        pytest.param(
            "name starts with 'O'''",
            {"name": "O'Hare"},
            ["matches", "name starts with 'O''' holds: name is 'O''Hare'"],
            id="quotes are doubled as in a filter",
        ),
    ],
)
def test_an_explanation_reads(text: str, record: dict[str, Value], said: list[str]) -> None:
    assert str(Filter.parse(text).explain(record)) == "\n  ".join(said)
