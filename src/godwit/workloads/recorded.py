"""A market of recorded quotes, such as the thesis's own (7.1.1).

Each symbol's quotes come in the order of their dates, and start again after the last: the thesis
does not say what its publishers did at the end of a stock's history.  Thresholds come from all days
of the market.  A stock changes over twenty years, so an experiment that plays few days should read
only these (`read_market(days_max=...)`); otherwise its ratings do not sink their nominal shares: in
the first 300 days 7% and 29% on average instead of 10% and 50%.  The last days are read, because in
the first years some stocks have one price a day.
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
    """Recorded quotes, in the order of their dates, repeated."""

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
        """A sentence for each row that was left out, with the reason."""

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
    """Quotes as records, made on demand: a record takes six times the memory."""

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
