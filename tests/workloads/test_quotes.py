"""Reading quotes: what is good comes as it is, what is bad is named by line and rule."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from godwit.errors import UsageError
from godwit.workloads.placement import sunk_by_rating
from godwit.workloads.quotes import (
    BAD_ROWS_MAX,
    LINE_CHARACTERS_MAX,
    open_market,
    read_market,
    read_quotes,
)
from godwit.workloads.recorded import RecordedMarket
from godwit.workloads.stock_quotes import Quote
from godwit.workloads.stocks import Rating, StockMarket

THESIS_QUOTES = Path(__file__).parents[3] / "shared" / "data" / "stock_quotes.csv.gz"
needs_thesis_quotes = pytest.mark.skipif(
    not THESIS_QUOTES.exists(), reason="the thesis's quotes are not here"
)

HEADER = "symbol,date,open,high,low,close,volume\n"
A1 = "A,1996-09-20,23.00,23.50,21.25,21.62,2133700\n"
A2 = "A,1996-09-23,22.00,24.13,21.00,24.13,350900\n"
B1 = "B,1996-09-20,1.00,1.00,1.00,1.00,0\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "quotes.csv"
    path.write_text(text)
    return path


def test_rows_become_quotes_with_the_thesis_s_dates(tmp_path: Path) -> None:
    assert list(read_quotes(written(tmp_path, HEADER + A1 + B1))) == [
        Quote("A", "20-Sep-96", 23.0, 23.5, 21.25, 21.62, 2133700),
        Quote("B", "20-Sep-96", 1.0, 1.0, 1.0, 1.0, 0),
    ]


def test_a_gzipped_file_and_one_from_windows_read_the_same(tmp_path: Path) -> None:
    plain = list(read_quotes(written(tmp_path, HEADER + A1 + A2)))
    packed = tmp_path / "quotes.csv.gz"
    packed.write_bytes(gzip.compress((HEADER + A1 + A2).replace("\n", "\r\n").encode()))

    assert list(read_quotes(packed)) == plain


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        pytest.param("A,1996-09-20,1,1,1,1", "6 fields instead of 7 (Q1)", id="a field is missing"),
        pytest.param("", "1 fields instead of 7 (Q1)", id="an empty line"),
        pytest.param(",1996-09-20,1,1,1,1,5", "no symbol (Q2)", id="no symbol"),
        pytest.param("A,1996-02-30,1,1,1,1,5", "date '1996-02-30'", id="no such day"),
        pytest.param("A,19960920,1,1,1,1,5", "date '19960920'", id="another way to write a date"),
        pytest.param("A,1996-09-20,x,1,1,1,5", "open 'x' is not a number (Q3)", id="no number"),
        pytest.param("A,1996-09-20,nan,1,1,1,5", "open nan is not a positive price", id="nan"),
        pytest.param("A,1996-09-20,1,1,0,1,5", "low 0 is not a positive price (Q3)", id="free"),
        pytest.param("A,1996-09-20,1,1,1,1,-5", "volume '-5'", id="less than nothing traded"),
        pytest.param("A,1996-09-20,1,1,1,1,5.5", "volume '5.5'", id="half a share"),
        pytest.param("A,1996-09-20,1,2,1,3,5", "close 3.0 is not between", id="close over high"),
        pytest.param("A,1996-09-20,1,1,2,1,5", "open 1.0 is not between", id="low over high"),
    ],
)
def test_a_bad_row_is_named_by_line_and_rule(tmp_path: Path, row: str, complaint: str) -> None:
    path = written(tmp_path, HEADER + B1 + row + "\n")
    with pytest.raises(UsageError) as raised:
        list(read_quotes(path))

    assert f"{path}, line 3: " in str(raised.value)
    assert complaint in str(raised.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("", "quotes of 0 symbols", id="an empty file"),
        pytest.param(HEADER, "quotes of 0 symbols", id="a header alone"),
        pytest.param("symbol,day\n" + A1, "line 1: the header must be", id="another header"),
        pytest.param(HEADER + "A" * 2000, f"longer than {LINE_CHARACTERS_MAX}", id="a long line"),
    ],
)
def test_a_file_that_is_no_market(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read_market(written(tmp_path, text), Random(1))


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        pytest.param(A2 + A1, "1996-09-20 does not come after 1996-09-23", id="back in time"),
        pytest.param(A1 + A1, "does not come after", id="twice the same day"),
        pytest.param(A1 + B1 + A2, "rows of A are not contiguous", id="a symbol comes back"),
    ],
)
def test_rows_stand_in_order(tmp_path: Path, rows: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        list(read_quotes(written(tmp_path, HEADER + rows)))


def test_bad_rows_are_passed_over_for_who_asks_for_it(tmp_path: Path) -> None:
    bad: list[str] = []
    path = written(tmp_path, HEADER + A1 + "A,1996-09-21,9,1,1,1,5\n" + A2)

    assert [quote.volume for quote in read_quotes(path, passed_over=bad)] == [2133700, 350900]
    assert bad == [f"{path}, line 3: open 9.0 is not between low 1.0 and high 1.0 (Q4)"]


def test_too_many_bad_rows_are_another_format(tmp_path: Path) -> None:
    rows = "A,1996-09-21,9,1,1,1,5\n" * (BAD_ROWS_MAX + 1)
    with pytest.raises(UsageError, match=f"line {BAD_ROWS_MAX + 2}: .* rows before it"):
        read_market(written(tmp_path, HEADER + rows + A1), Random(1))


def test_a_file_of_bad_rows_only_says_what_is_wrong(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "A,1996-09-21,9,1,1,1,5\n")
    with pytest.raises(UsageError, match=r"quotes of 0 symbols.* line 2: .*\(Q4\)"):
        read_market(path, Random(1))


def test_what_is_no_file_of_quotes_is_a_usage_error(tmp_path: Path) -> None:
    broken = tmp_path / "quotes.csv.gz"
    broken.write_bytes(b"no gzip")
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress((HEADER + A1 * 100).encode())[:-12])
    binary = tmp_path / "quotes.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (broken, cut, binary, tmp_path / "none.csv", tmp_path):
        with pytest.raises(UsageError, match=r"quotes|cut|test_what"):
            list(read_quotes(path))


def test_reading_streams(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + A1 + A2 + "bad\n")
    quotes: Iterator[Quote] = read_quotes(path)

    assert len(list(islice(quotes, 2))) == 2  # The bad row has not been read yet.


def test_a_market_of_some_symbols_and_days(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + A1 + A2 + B1)

    market = read_market(path, Random(1), symbols=1, days_max=1)
    assert market.symbols == ("A",)
    assert [quote["date"] for quote in market.seen("A")] == ["23-Sep-96"]
    with pytest.raises(UsageError, match="quotes of 2 symbols; 3 were asked for"):
        read_market(path, Random(1), symbols=3)


def test_without_a_file_the_market_is_generated(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + A1)

    assert isinstance(open_market(path, Random(1), symbols=1), RecordedMarket)
    generated = open_market(None, Random(1), symbols=3)
    assert isinstance(generated, StockMarket)
    assert generated.quote("S001") == StockMarket(Random(1), symbols=3).quote("S001")


@needs_thesis_quotes
def test_the_thesis_s_quotes() -> None:
    bad: list[str] = []
    rows = 0
    symbols = set()
    for quote in read_quotes(THESIS_QUOTES, passed_over=bad):
        rows += 1
        symbols.add(quote.symbol)

    assert (rows, len(symbols), len(bad)) == (245_189, 100, 1)
    assert "line 34625: open 31007.0" in bad[0]


@needs_thesis_quotes
def test_ratings_sink_their_shares_of_the_thesis_s_quotes() -> None:
    market = read_market(THESIS_QUOTES, Random(1), symbols=20, days_max=500)
    sunk = sunk_by_rating(market, quotes=500)

    assert sunk[Rating.LOW].mean == pytest.approx(0.10, abs=0.005)
    assert sunk[Rating.MEDIUM].mean == pytest.approx(0.50, abs=0.02)
    assert sunk[Rating.HIGH].least == 1.0
