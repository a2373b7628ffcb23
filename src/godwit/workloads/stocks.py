"""The stock market of the thesis (7.1.1, 7.2, 7.3): quotes, and filters over them.

    generated    StockMarket(Random(7), symbols=100)
    recorded     quotes.read_market(path, Random(7))

Generated: a symbol's price is a random walk and its volume is log-normal around the symbol's own
typical volume, so the derived attributes have tails like those of real daily quotes.  GENTLE is
the market the benchmarks use; THESIS_LIKE was fitted by hand to the medians and spreads of the
thesis's own quotes, whose stocks are thinner and wilder.  Everything comes from the generator
passed in: the same seed gives the same market.

A generated market draws its first HISTORY_DAYS at once; thresholds come from these days, quotes
from those after them.

Read next: recorded.py (the other market), stock_quotes.py (what a quote is), stock_templates.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from godwit.content.filters import Filter
from godwit.content.values import Record, Value
from godwit.workloads import stock_templates
from godwit.workloads.stock_quotes import MONTHS, NUMERIC_ATTRIBUTES, advertisement_of
from godwit.workloads.stock_templates import Rating

__all__ = [
    "GENTLE",
    "NUMERIC_ATTRIBUTES",
    "THESIS_LIKE",
    "Market",
    "Profile",
    "Rating",
    "StockMarket",
]

DAYS_PER_YEAR = 250
HISTORY_DAYS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How a generated stock behaves.  `_log_sd` is the spread of the logarithm."""

    volume_log_mean: float
    volume_log_sd: float
    """Spread of the typical volumes of different symbols."""

    volume_daily_log_sd: float
    open_log_sd: float
    close_log_sd: float
    unchanged_share: float
    """Days that close where they opened; small and thinly traded stocks have many."""

    shadow_sd: float
    shadow_share: float
    """Days that went higher than both open and close; as many went lower."""


GENTLE = Profile(
    volume_log_mean=11, volume_log_sd=2, volume_daily_log_sd=0.8, open_log_sd=0.005,
    close_log_sd=0.03, unchanged_share=0.125, shadow_sd=0.02, shadow_share=0.75,
)  # fmt: skip
THESIS_LIKE = Profile(
    volume_log_mean=10.8, volume_log_sd=2.8, volume_daily_log_sd=1.8, open_log_sd=0.03,
    close_log_sd=0.042, unchanged_share=0.23, shadow_sd=0.03, shadow_share=0.53,
)  # fmt: skip


class Market(ABC):
    """Stocks by symbol: the next quote of each, and filters with thresholds from its quotes."""

    symbols: tuple[str, ...]

    def __init__(self, random: Random) -> None:
        self._random = random
        self._rated: dict[tuple[str, Rating], Filter] = {}

    @abstractmethod
    def quote(self, symbol: str) -> dict[str, Value]:
        """The next day's quote of `symbol`."""

    @abstractmethod
    def seen(self, symbol: str) -> Sequence[Record]:
        """The quotes of `symbol` from which thresholds are drawn."""

    def advertisement(self, symbol: str) -> Filter:
        """The advertisement of a publisher of this symbol's quotes."""
        return advertisement_of(symbol)

    def template_filter(self, symbol: str) -> Filter:
        """One subscription of the thesis's six templates, drawn with their shares (LS3)."""
        return stock_templates.template_filter(symbol, self.seen(symbol), self._random)

    def allocation_filter(self, symbol: str) -> Filter:
        """One subscription of the resource-allocation workload (RS4)."""
        return stock_templates.allocation_filter(symbol, self.seen(symbol), self._random)

    def zero_traffic_filter(self, symbol: str) -> Filter:
        """A subscription that no quote matches (LS2)."""
        return stock_templates.zero_traffic_filter(symbol, self._random)

    def rated_filter(self, symbol: str, rating: Rating) -> Filter:
        """A placement subscription that sinks about `rating` of the symbol's quotes (GS2, GS3)."""
        known = self._rated.get((symbol, rating))
        if known is None:
            known = stock_templates.rated_filter(symbol, self.seen(symbol), rating)
            self._rated[symbol, rating] = known
        return known


@dataclass(slots=True)
class _Symbol:
    price: float
    volume_typical: float
    day: int = 0


class StockMarket(Market):
    """Generated quotes for `symbols` symbols, one day after the other."""

    def __init__(self, random: Random, *, symbols: int = 100, profile: Profile = GENTLE) -> None:
        super().__init__(random)
        self.profile = profile
        self.symbols = tuple(f"S{number:03d}" for number in range(symbols))
        self._state = {
            symbol: _Symbol(
                random.uniform(5, 100),
                random.lognormvariate(profile.volume_log_mean, profile.volume_log_sd),
            )
            for symbol in self.symbols
        }
        self._history = {
            symbol: [self.quote(symbol) for _ in range(HISTORY_DAYS)] for symbol in self.symbols
        }

    def seen(self, symbol: str) -> Sequence[Record]:
        return self._history[symbol]

    def quote(self, symbol: str) -> dict[str, Value]:
        draw, state, profile = self._random, self._state[symbol], self.profile
        opened = state.price * draw.lognormvariate(0, profile.open_log_sd)
        unchanged = draw.random() < profile.unchanged_share
        closed = opened if unchanged else opened * draw.lognormvariate(0, profile.close_log_sd)
        high = max(opened, closed) * (1 + self._shadow())
        low = min(opened, closed) / (1 + self._shadow())
        state.day += 1
        state.price = min(max(closed, 1.0), 1000.0)
        volume = state.volume_typical * draw.lognormvariate(0, profile.volume_daily_log_sd)
        return {
            "class": "STOCK",
            "symbol": symbol,
            "open": round(opened, 2),
            "high": round(high, 2),
            "low": round(low, 2),
            "close": round(closed, 2),
            "volume": 100 * round(volume / 100),
            "date": _date(state.day),
            # From the prices before rounding: cents would make ties that the walk has not.
            "openClose%Diff": round(abs(opened - closed) / opened, 4),
            "highLow%Diff": round((high - low) / low, 4),
            "closeEqualsLow": "true" if closed == low else "false",
            "closeEqualsHigh": "true" if closed == high else "false",
        }

    def _shadow(self) -> float:
        length = abs(self._random.gauss(0, self.profile.shadow_sd))
        return length * (self._random.random() < self.profile.shadow_share)


def _date(day: int) -> str:
    """A date in the thesis's style, `5-Sep-96`; a year has DAYS_PER_YEAR trading days."""
    year, of_year = divmod(day, DAYS_PER_YEAR)
    month, of_month = divmod(of_year, 21)
    return f"{of_month + 1}-{MONTHS[min(month, 11)]}-{(96 + year) % 100:02d}"
