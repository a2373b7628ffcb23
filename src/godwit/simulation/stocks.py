"""The stock-quote workload of the thesis (7.1.1, 7.2): generated quotes, and filters over them.

A symbol's price is a random walk and its volume is log-normal around the symbol's own typical
volume, so the derived attributes have tails like those of real daily quotes.  Thresholds of
filters are values that the symbol itself has shown, as in the thesis.  Everything comes from the
generator passed in: the same seed gives the same market.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random

from godwit.content.filters import Filter
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import Record, Value

DAYS_PER_YEAR = 250
HISTORY_DAYS = 200
NUMERIC_ATTRIBUTES = ("open", "high", "low", "close", "volume", "openClose%Diff", "highLow%Diff")


class Rating(Enum):
    """How much of its symbol's traffic a placement subscription sinks (thesis 7.2.1)."""

    LOW = 0.10
    MEDIUM = 0.50
    HIGH = 1.00


@dataclass(slots=True)
class _Symbol:
    price: float
    volume_typical: float
    day: int = 0


class StockMarket:
    """Quotes for `symbols` symbols, one day after the other."""

    def __init__(self, random: Random, *, symbols: int = 100) -> None:
        self._random = random
        self.symbols = tuple(f"S{number:03d}" for number in range(symbols))
        self._state = {
            symbol: _Symbol(random.uniform(5, 100), random.lognormvariate(11, 2))
            for symbol in self.symbols
        }
        self._history = {
            symbol: [self.quote(symbol) for _ in range(HISTORY_DAYS)] for symbol in self.symbols
        }

    def quote(self, symbol: str) -> dict[str, Value]:
        """The next day's quote of `symbol`."""
        draw, state = self._random, self._state[symbol]
        opened = state.price * draw.lognormvariate(0, 0.005)
        # One day in eight closes where it opened; small and thinly traded stocks do.
        closed = opened if draw.random() < 0.125 else opened * draw.lognormvariate(0, 0.03)
        high = max(opened, closed) * (1 + abs(draw.gauss(0, 0.02)) * (draw.random() < 0.75))
        low = min(opened, closed) / (1 + abs(draw.gauss(0, 0.02)) * (draw.random() < 0.75))
        state.day += 1
        state.price = min(max(closed, 1.0), 1000.0)
        return {
            "class": "STOCK",
            "symbol": symbol,
            "open": round(opened, 2),
            "high": round(high, 2),
            "low": round(low, 2),
            "close": round(closed, 2),
            "volume": 100 * round(state.volume_typical * draw.lognormvariate(0, 0.8) / 100),
            "date": _date(state.day),
            "openClose%Diff": round(abs(opened - closed) / opened, 4),
            "highLow%Diff": round((high - low) / low, 4),
            "closeEqualsLow": "true" if closed == low else "false",
            "closeEqualsHigh": "true" if closed == high else "false",
        }

    def advertisement(self, symbol: str) -> Filter:
        """What a publisher of this symbol's quotes announces."""
        return Filter(
            [
                Predicate("class", Operator.EQUAL, "STOCK"),
                Predicate("symbol", Operator.EQUAL, symbol),
                *(Predicate(name, Operator.PRESENT) for name in (*NUMERIC_ATTRIBUTES, "date")),
                Predicate("closeEqualsLow", Operator.PRESENT),
                Predicate("closeEqualsHigh", Operator.PRESENT),
            ]
        )

    def template_filter(self, symbol: str) -> Filter:
        """One subscription of the thesis's six templates, drawn with their shares (LS3)."""
        share = self._random.random()
        if share < 0.20:
            return self._stock(symbol, self._bound(symbol, "high", Operator.ABOVE))
        if share < 0.40:
            return self._stock(symbol, self._bound(symbol, "low", Operator.BELOW))
        if share < 0.60:
            return self._stock(symbol, self._bound(symbol, "volume", Operator.ABOVE))
        if share < 0.94:
            return self._stock(symbol)
        if share < 0.99:
            return self._stock(None, self._bound(symbol, "volume", Operator.ABOVE))
        return self._stock(None)

    def rated_filter(self, symbol: str, rating: Rating) -> Filter:
        """A placement subscription that sinks about `rating` of the symbol's quotes (GS2, GS3).

        The thesis fixes the thresholds (highLow%Diff > 0.15; volume > 1,000,000 and
        openClose%Diff > 0.025) and reports the shares; we fix the shares and find the
        thresholds in the symbol's own history.
        """
        match rating:
            case Rating.LOW:
                return self._stock(symbol, self._above(symbol, "highLow%Diff", 0.10))
            case Rating.MEDIUM:
                # Two conditions that are nearly independent: each must pass the root of a half.
                volume = self._above(symbol, "volume", 0.5**0.5)
                change = self._above(symbol, "openClose%Diff", 0.5**0.5)
                return self._stock(symbol, volume, change)
            case Rating.HIGH:
                return self._stock(symbol)

    def _stock(self, symbol: str | None, *more: Predicate) -> Filter:
        named = () if symbol is None else (Predicate("symbol", Operator.EQUAL, symbol),)
        return Filter([Predicate("class", Operator.EQUAL, "STOCK"), *named, *more])

    def _bound(self, symbol: str, attribute: str, operator: Operator) -> Predicate:
        seen = self._random.choice(self._history[symbol])
        return Predicate(attribute, operator, seen[attribute])

    def _above(self, symbol: str, attribute: str, share: float) -> Predicate:
        """`attribute > v` with v such that about `share` of the symbol's history passes."""
        seen = sorted(_number(quote, attribute) for quote in self._history[symbol])
        threshold = seen[int((1 - share) * (len(seen) - 1))]
        return Predicate(attribute, Operator.ABOVE, threshold)


def _number(record: Record, attribute: str) -> float:
    value = record[attribute]
    assert not isinstance(value, str)
    return float(value)


def _date(day: int) -> str:
    """A date in the thesis's style, `5-Sep-96`; a year has DAYS_PER_YEAR trading days."""
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    year, of_year = divmod(day, DAYS_PER_YEAR)
    month, of_month = divmod(of_year, 21)
    return f"{of_month + 1}-{months[min(month, 11)]}-{(96 + year) % 100:02d}"
