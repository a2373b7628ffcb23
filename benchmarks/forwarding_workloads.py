"""The workloads of the forwarding benchmark: filters and records, the same for every broker.

W1                  stock quotes (godwit.workloads.stocks), 1,000 filters of the thesis's six
                    templates.  One filter in twenty names no symbol, so that a record matches
                    dozens of filters.
equality and range  `class = 'STOCK' and symbol = S and volume > t`, 10,000 filters on the same
                    quotes.  Of a symbol's 100 filters, 4 have a threshold that the symbol reaches;
                    the others have one above the volume of any record.  So a record matches at
                    most 4% of its symbol's filters, 2 on average, and the benchmark measures
                    finding them, not copying to thousands of subscribers.
topics              `topic = 't17'`: what a broker with topics supports too.  1,000 filters,
                    every record matches exactly one.

Invariants:
F1  A record is RECORD_BYTES long as compact JSON; the attribute `padding` fills it up.
F2  The attribute `number` of a record is its index in `records`, so that a delivery identifies
    its record.
F3  The same seed gives the same workload.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from random import Random

from godwit.content.filters import Filter
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import Record, Value
from godwit.matching.index import MatchingIndex
from godwit.workloads.stocks import StockMarket

SEED = 1
RECORD_BYTES = 300
REACHED_FILTERS_PER_SYMBOL = 4
TOPICS = "topics"


@dataclass(frozen=True)
class ForwardingWorkload:
    """Filters that one client holds, and records that another publishes, in this order."""

    name: str
    filters: list[Filter]
    records: list[dict[str, Value]]

    @cached_property
    def matches(self) -> list[list[int]]:
        """For each record the numbers of the filters that match it, in ascending order."""
        index: MatchingIndex[int] = MatchingIndex()
        for number, filter in enumerate(self.filters):
            index.add(number, filter)
        return [sorted(index.match(record)) for record in self.records]

    @property
    def deliveries(self) -> int:
        """Deliveries of a broker that sends one copy for each filter."""
        return sum(map(len, self.matches))

    @property
    def matched_records(self) -> int:
        """Deliveries of a broker that sends one copy for each client."""
        return sum(map(bool, self.matches))


def stock_quotes(
    *, filters: int = 1_000, records: int = 100_000, seed: int = SEED
) -> ForwardingWorkload:
    random = Random(seed)
    market = StockMarket(random)
    wanted = [market.template_filter(random.choice(market.symbols)) for _ in range(filters)]
    return ForwardingWorkload("W1", wanted, _quotes(market, random, records))


def equality_and_range(
    *, filters: int = 10_000, records: int = 100_000, seed: int = SEED
) -> ForwardingWorkload:
    random = Random(seed)
    market = StockMarket(random)
    quotes = _quotes(market, random, records)
    out_of_reach = max(_volume(quote) for quote in quotes)
    wanted = []
    for number in range(filters):
        turn, place = divmod(number, len(market.symbols))
        symbol = market.symbols[place]
        if turn < REACHED_FILTERS_PER_SYMBOL:
            threshold = _volume(market.quote(symbol))
        else:
            threshold = out_of_reach + random.randrange(out_of_reach)
        wanted.append(_symbol_above(symbol, threshold))
    return ForwardingWorkload("equality and range", wanted, quotes)


def topics(*, filters: int = 1_000, records: int = 100_000, seed: int = SEED) -> ForwardingWorkload:
    random = Random(seed)
    wanted = [
        Filter([Predicate("topic", Operator.EQUAL, f"t{number}")]) for number in range(filters)
    ]
    sent = [
        _on_the_wire({"topic": f"t{random.randrange(filters)}"}, number)
        for number in range(records)
    ]
    return ForwardingWorkload(TOPICS, wanted, sent)


WORKLOADS = {"W1": stock_quotes, "equality and range": equality_and_range, TOPICS: topics}


def encoded(record: Record) -> bytes:
    """The record as compact JSON."""
    return json.dumps(record, separators=(",", ":")).encode()


def _quotes(market: StockMarket, random: Random, count: int) -> list[dict[str, Value]]:
    return [
        _on_the_wire(market.quote(random.choice(market.symbols)), number) for number in range(count)
    ]


def _on_the_wire(content: Record, number: int) -> dict[str, Value]:
    """`content` with its number (F2), padded to RECORD_BYTES (F1)."""
    record = {**content, "number": number, "padding": ""}
    missing = RECORD_BYTES - len(encoded(record))
    assert missing >= 0, f"{-missing} bytes too long: {record}"
    return {**record, "padding": "x" * missing}


def _symbol_above(symbol: str, threshold: int) -> Filter:
    return Filter(
        [
            Predicate("class", Operator.EQUAL, "STOCK"),
            Predicate("symbol", Operator.EQUAL, symbol),
            Predicate("volume", Operator.ABOVE, threshold),
        ]
    )


def _volume(quote: Record) -> int:
    volume = quote["volume"]
    assert isinstance(volume, int)
    return volume
