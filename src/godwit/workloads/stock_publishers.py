"""One publisher for each stock, as in all experiments of the thesis."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from godwit.content.values import Record
from godwit.workloads.clients import Publisher
from godwit.workloads.stocks import Market


def stock_publishers(
    market: Market, at: Callable[[], str], rate_per_min: Callable[[], float], random: Random
) -> tuple[Publisher, ...]:
    """One publisher for each symbol of the market."""
    return tuple(
        Publisher(
            name=f"publisher-{symbol}",
            at=at(),
            advertisement=market.advertisement(symbol),
            subject=symbol,
            publications_per_min=rate_per_min(),
            phase=random.random(),
        )
        for symbol in market.symbols
    )


def quotes_of(market: Market) -> Callable[[Publisher], Record]:
    """Draws the next quote of a publisher's stock."""
    return lambda publisher: market.quote(publisher.subject)
