"""What a stock quote is: the row of a quotes file, and the publication made of it (thesis 7.1.1).

    [class,'STOCK'],[symbol,'YHOO'],[open,18.37],[high,18.6],[low,18.37],[close,18.37],
    [volume,6200],[date,'5-Sep-96'],[openClose%Diff,0.0],[highLow%Diff,0.014],
    [closeEqualsLow,'true'],[closeEqualsHigh,'false']

The thesis names the derived attributes and does not define them.  Chosen:

openClose%Diff    |open - close| / open.  Without a sign: half of a stock's traffic could not pass
                  `> 0.025` together with a bound on volume if falling days never did.
highLow%Diff      (high - low) / low.  The thesis's example has 0.014 where this gives 0.0125; no
                  ratio of its four prices gives 0.014, so it was computed from other ones.
closeEqualsLow, closeEqualsHigh    strings, as in the example.

Rows come from quotes.py and stocks.py; subscriptions to them are in stock_templates.py.
"""

from __future__ import annotations

from typing import NamedTuple

from godwit.content.filters import Filter
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import Record, Value

NUMERIC_ATTRIBUTES = ("open", "high", "low", "close", "volume", "openClose%Diff", "highLow%Diff")
STRING_ATTRIBUTES = ("class", "symbol", "date", "closeEqualsLow", "closeEqualsHigh")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Quote(NamedTuple):
    """One day of one stock.  Small: the thesis's 245,190 of them fit into about 60 MB."""

    symbol: str
    date: str
    """In the thesis's format: `5-Sep-96`."""

    open: float
    high: float
    low: float
    close: float
    volume: int


def quote_record(quote: Quote) -> dict[str, Value]:
    """The publication that announces `quote`."""
    return {
        "class": "STOCK",
        "symbol": quote.symbol,
        "open": quote.open,
        "high": quote.high,
        "low": quote.low,
        "close": quote.close,
        "volume": quote.volume,
        "date": quote.date,
        "openClose%Diff": round(abs(quote.open - quote.close) / quote.open, 4),
        "highLow%Diff": round((quote.high - quote.low) / quote.low, 4),
        "closeEqualsLow": "true" if quote.close == quote.low else "false",
        "closeEqualsHigh": "true" if quote.close == quote.high else "false",
    }


def advertisement_of(symbol: str) -> Filter:
    """The advertisement of a publisher of this symbol's quotes."""
    return Filter(
        [
            Predicate("class", Operator.EQUAL, "STOCK"),
            Predicate("symbol", Operator.EQUAL, symbol),
            *(Predicate(name, Operator.PRESENT) for name in (*NUMERIC_ATTRIBUTES, "date")),
            Predicate("closeEqualsLow", Operator.PRESENT),
            Predicate("closeEqualsHigh", Operator.PRESENT),
        ]
    )


def number(record: Record, attribute: str) -> float:
    value = record[attribute]
    assert not isinstance(value, str), f"{attribute} is a number in a quote"
    return float(value)
