"""Reads a file of stock quotes, plain or gzipped.

    symbol,date,open,high,low,close,volume
    AAII,1996-09-20,23.00,23.50,21.25,21.62,2133700

The thesis's own quotes are such a file (100 symbols, 245,190 rows); without one, `open_market`
generates a market instead.  Reading streams: one line is in memory at a time, and no line may be
longer than LINE_CHARACTERS_MAX.  A violated rule raises a UsageError with line and rule.

Q1  The first line is the header above; every other line has seven fields.
Q2  Symbol and date are not empty, the date is a day of the calendar (ISO 8601).
Q3  Prices are positive numbers, the volume is an integer that is not negative.
Q4  low <= open, close <= high.
Q5  The rows of a symbol are contiguous, each of a later day than the one before.

The thesis's file breaks Q4 once (ATCO opens at 31007.00 on a day between 9.38 and 9.38).  To read
on, pass a list for up to BAD_ROWS_MAX bad rows; `read_market` does.
"""

from __future__ import annotations

import gzip
import zlib
from collections import deque
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from math import isfinite
from pathlib import Path
from random import Random
from typing import TextIO

from godwit.errors import UsageError
from godwit.workloads.recorded import RecordedMarket
from godwit.workloads.stock_quotes import MONTHS, Quote
from godwit.workloads.stocks import GENTLE, Market, Profile, StockMarket

COLUMNS = ("symbol", "date", "open", "high", "low", "close", "volume")
LINE_CHARACTERS_MAX = 1000
#: More bad rows than this mean that the file has another format.
BAD_ROWS_MAX = 10
VOLUME_MAX = 10**12


def read_quotes(path: Path, *, passed_over: list[str] | None = None) -> Iterator[Quote]:
    """The quotes of a file, one after the other.

    A bad row raises, unless there is a list for such errors with less than BAD_ROWS_MAX entries.
    """
    try:
        with _opened(path) as file:
            yield from _quotes(file, path, passed_over)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as quotes: {error}") from error


def read_market(
    path: Path, random: Random, *, symbols: int | None = None, days_max: int | None = None
) -> RecordedMarket:
    """A market of the first `symbols` symbols of a file, with the last `days_max` of each."""
    kept: dict[str, deque[Quote]] = {}
    bad: list[str] = []
    for quote in read_quotes(path, passed_over=bad):
        if quote.symbol not in kept and len(kept) == symbols:
            break
        kept.setdefault(quote.symbol, deque(maxlen=days_max)).append(quote)
    if not kept or (symbols is not None and len(kept) < symbols):
        wanted = "a market needs one" if symbols is None else f"{symbols} were asked for"
        raise UsageError("; ".join([f"{path}: quotes of {len(kept)} symbols; {wanted}", *bad[:1]]))
    quotes = {symbol: list(days) for symbol, days in kept.items()}
    return RecordedMarket(random, quotes, passed_over=bad)


def open_market(
    path: Path | None,
    random: Random,
    *,
    symbols: int = 100,
    days_max: int | None = None,
    profile: Profile = GENTLE,
) -> Market:
    """The recorded market if a file is given, otherwise a generated one of the same size."""
    if path is None:
        return StockMarket(random, symbols=symbols, profile=profile)
    return read_market(path, random, symbols=symbols, days_max=days_max)


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="\n")
    return path.open(encoding="utf-8", newline="\n")


def _quotes(file: TextIO, path: Path, passed_over: list[str] | None) -> Iterator[Quote]:
    before: tuple[str, str] | None = None
    done: set[str] = set()
    for line, text in enumerate(_lines(file), start=1):
        where = f"{path}, line {line}"
        if len(text) > LINE_CHARACTERS_MAX:
            raise UsageError(f"{where}: longer than {LINE_CHARACTERS_MAX} characters (Q1)")
        fields = text.rstrip("\r\n").split(",")
        if line == 1:
            if tuple(fields) != COLUMNS:
                raise UsageError(f"{where}: the header must be {','.join(COLUMNS)} (Q1)")
            continue
        try:
            quote = _quote(fields)
            _check_order(quote.symbol, fields[1], before, done)
        except _BadRowError as bad:
            sentence = f"{where}: {bad}"
            if passed_over is None:
                raise UsageError(sentence) from None
            if len(passed_over) == BAD_ROWS_MAX:
                raise UsageError(f"{sentence}; and {BAD_ROWS_MAX} rows before it") from None
            passed_over.append(sentence)
            continue
        if before is not None and before[0] != quote.symbol:
            done.add(before[0])
        before = (quote.symbol, fields[1])
        yield quote


class _BadRowError(Exception):
    """A row violates a rule; the message says which."""


def _lines(file: TextIO) -> Iterator[str]:
    return iter(lambda: file.readline(LINE_CHARACTERS_MAX + 1), "")


def _quote(fields: list[str]) -> Quote:
    if len(fields) != len(COLUMNS):
        raise _BadRowError(f"{len(fields)} fields instead of {len(COLUMNS)} (Q1)")
    symbol, day, *prices, volume = fields
    if not symbol:
        raise _BadRowError("no symbol (Q2)")
    opened, high, low, close = map(_price, COLUMNS[2:6], prices)
    for name, price in (("open", opened), ("close", close)):
        if not low <= price <= high:
            raise _BadRowError(f"{name} {price} is not between low {low} and high {high} (Q4)")
    return Quote(symbol, _thesis_date(day), opened, high, low, close, _volume(volume))


def _price(name: str, text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        raise _BadRowError(f"{name} {text!r} is not a number (Q3)") from None
    if not (isfinite(price) and price > 0):
        raise _BadRowError(f"{name} {text} is not a positive price (Q3)")
    return price


def _volume(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 13 and int(text) <= VOLUME_MAX):
        raise _BadRowError(f"volume {text!r} is not an integer from 0 to {VOLUME_MAX} (Q3)")
    return int(text)


@lru_cache(maxsize=8192)  # Twenty years of trading days; equal days share a string.
def _thesis_date(text: str) -> str:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise _BadRowError(f"date {text!r} is not of the form 1996-09-20 (Q2)") from None
    if text != day.isoformat():  # Python reads other ISO forms too, which do not sort as text.
        raise _BadRowError(f"date {text!r} is not of the form 1996-09-20 (Q2)")
    return f"{day.day}-{MONTHS[day.month - 1]}-{day.year % 100:02d}"


def _check_order(symbol: str, day: str, before: tuple[str, str] | None, done: set[str]) -> None:
    if before is not None and before[0] == symbol:
        if day <= before[1]:
            raise _BadRowError(f"{day} does not come after {before[1]} (Q5)")
    elif symbol in done:
        raise _BadRowError(f"rows of {symbol} are not contiguous (Q5)")
