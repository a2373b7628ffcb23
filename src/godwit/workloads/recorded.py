"""A market of quotes that were really seen, such as the thesis's own (7.1.1).

Each symbol's quotes come in the order of their dates, and again from the first after the last:
the thesis does not say what its publishers did at the end of a stock's history.  Thresholds come
from all days of the market.  A stock of 2004 is not that of 1984, so an experiment that plays few
days reads only these (`read_market(days_max=...)`); else its ratings sink what they sink over
twenty years, and not what they are named for: in the first 300 days 7% and 29% on average instead
of 10% and 50%.  The last days are read, for in the first years some stocks have one price a day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import overload

from godwit.content.values import Record, Value
from godwit.errors import UsageError
from godwit.workloads.stock_quotes import Quote, quote_record
from godwit.workloads.stocks import Market


class RecordedMarket(Market):
    """Quotes that were really seen, in the order of their dates, over and over."""

    def __init__(
        self,
        random: Random,
        quotes: Mapping[str, Sequence[Quote]],
        *,
        passed_over: Sequence[str] = (),
    ) -> None:
        super().__init__(random)
        if not quotes or not all(quotes.values()):
            raise UsageError("a recorded market needs at least one quote of each symbol")
        self.symbols = tuple(quotes)
        self.passed_over = tuple(passed_over)
        """What is wrong with the rows that were left out, one sentence each."""

        self._records = {symbol: _Records(days) for symbol, days in quotes.items()}
        self._day = dict.fromkeys(self.symbols, 0)

    def seen(self, symbol: str) -> Sequence[Record]:
        return self._records[symbol]

    def quote(self, symbol: str) -> dict[str, Value]:
        records = self._records[symbol]
        day = self._day[symbol]
        self._day[symbol] = (day + 1) % len(records)
        return records[day]


class _Records(Sequence[dict[str, Value]]):
    """Quotes as records, made when they are asked for: a record takes six times the memory."""

    def __init__(self, quotes: Sequence[Quote]) -> None:
        self._quotes = quotes

    def __len__(self) -> int:
        return len(self._quotes)

    @overload
    def __getitem__(self, day: int) -> dict[str, Value]: ...

    @overload
    def __getitem__(self, day: slice) -> list[dict[str, Value]]: ...

    def __getitem__(self, day: int | slice) -> dict[str, Value] | list[dict[str, Value]]:
        if isinstance(day, slice):
            return [quote_record(quote) for quote in self._quotes[day]]
        return quote_record(self._quotes[day])
