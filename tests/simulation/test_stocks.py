"""The generated market has the properties that the thesis's workload relies on."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from godwit.simulation.stocks import Rating, StockMarket

QUOTES = 200


def test_the_same_seed_gives_the_same_market() -> None:
    first, second = StockMarket(Random(7), symbols=5), StockMarket(Random(7), symbols=5)

    assert first.quote("S003") == second.quote("S003")
    assert first.template_filter("S001") == second.template_filter("S001")


def test_quotes_make_sense_and_conform_to_their_advertisement() -> None:
    market = StockMarket(Random(1), symbols=20)
    for symbol in market.symbols:
        for _ in range(50):
            quote = market.quote(symbol)
            low, high = quote["low"], quote["high"]
            assert isinstance(low, float)
            assert isinstance(high, float)
            for price in (quote["open"], quote["close"]):
                assert isinstance(price, float)
                assert 0 < low <= price <= high
            assert market.advertisement(symbol).permits(quote)


@pytest.mark.parametrize("rating", Rating)
def test_rated_filters_sink_about_the_share_they_are_named_for(rating: Rating) -> None:
    market = StockMarket(Random(1), symbols=50)
    matched = 0
    for symbol in market.symbols:
        filter = market.rated_filter(symbol, rating)
        matched += sum(filter.matches(market.quote(symbol)) for _ in range(QUOTES))

    assert matched / (QUOTES * 50) == pytest.approx(rating.value, rel=0.15)


def test_the_six_templates_come_in_the_shares_of_the_thesis() -> None:
    market = StockMarket(Random(1), symbols=10)
    shapes = Counter(
        tuple((p.attribute, p.operator.value) for p in market.template_filter("S001").predicates)
        for _ in range(10_000)
    )
    fixed = (("class", "="), ("symbol", "="))
    shares = {
        (*fixed, ("high", ">")): 0.20,
        (*fixed, ("low", "<")): 0.20,
        (*fixed, ("volume", ">")): 0.20,
        fixed: 0.34,
        (("class", "="), ("volume", ">")): 0.05,
        (("class", "="),): 0.01,
    }
    assert shapes.keys() == shares.keys()
    for shape, share in shares.items():
        assert shapes[shape] / 10_000 == pytest.approx(share, abs=0.015)
