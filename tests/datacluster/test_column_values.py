"""Which values fit which type: the same for columns of records and parameters of channels."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.datacluster.channels.arguments import canonical, columns
from godwit.datacluster.datasets.records import RecordFitter
from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.column_values import fit_all
from godwit.datacluster.model.dataset import Column, ColumnType, Dataset
from godwit.errors import UsageError

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
S, B, N, L, D, T = ColumnType

FITS = [
    (S, "", ""),
    (S, "é", "é"),
    (S, "x" * 65_536, "x" * 65_536),
    (B, False, False),
    (N, -(2**31), -(2**31)),
    (N, 2**31 - 1, 2**31 - 1),
    (N, 3.0, 3),
    (L, -(2**63), -(2**63)),
    (L, 2**63 - 1, 2**63 - 1),
    (L, -4.0, -4),
    (D, 3, 3.0),
    (D, 2**62 + 1, 2.0**62),
    (D, 1e-300, 1e-300),
    (T, 0, EPOCH),
    (T, 1.25, EPOCH + timedelta(seconds=1.25)),
    (T, -1, EPOCH - timedelta(seconds=1)),
    (T, "2026-05-01T12:00:00Z", NOON),
    (T, "2026-05-01T14:00:00+02:00", NOON),
    (T, "2026-05-01T12:00:00", NOON),
    (T, "2026-05-01 12:00:00.000005", NOON + timedelta(microseconds=5)),
    (T, "2026-05-01", NOON - timedelta(hours=12)),
    (T, NOON, NOON),
    (T, datetime(2026, 5, 1, 12), NOON),  # noqa: DTZ001  Without a zone it is UTC.
    (T, datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2))), NOON),
    (T, FIRST, FIRST),
    (T, "0001-01-01T00:00:00", FIRST),
    (T, -62_135_596_800, FIRST),
    (T, LAST, LAST),
    (T, 253_402_300_799, LAST.replace(microsecond=0)),
]
UNFIT = [
    (S, 1, "1 is not a text"),
    (S, ["x"], "['x'] is not a text"),
    (S, "x" * 65_537, "a text of 65537 characters; at most 65536 are allowed"),
    (S, "\ud800", "the text has half of a surrogate pair"),
    (B, 1, "1 is neither true nor false"),
    (B, "true", "'true' is neither true nor false"),
    (N, 2**31, "2147483648 does not fit into INT"),
    (N, -(2**31) - 1, "-2147483649 does not fit into INT"),
    (N, True, "True is not a whole number"),
    (N, 1.5, "1.5 is not a whole number"),
    (N, "1", "'1' is not a whole number"),
    (N, math.inf, "inf is not a whole number"),
    (L, 2**63, "9223372036854775808 does not fit into BIGINT"),
    (L, 1e300, "an integer of 997 bits does not fit into BIGINT"),
    (D, math.nan, "nan is not a finite number"),
    (D, -math.inf, "-inf is not a finite number"),
    (D, True, "True is not a number"),
    (D, "1.5", "'1.5' is not a number"),
    (D, [1.0], "[1.0] is not a number"),
    (D, 2**63, "9223372036854775808 does not fit into DOUBLE: an integer must fit into 64 bits"),
    (D, 10**400, "an integer of 1329 bits does not fit into DOUBLE"),
    (T, math.nan, "nan is not a finite number"),
    (T, 1e300, "1e+300 is a time outside the years 1 to 9999"),
    (T, -1e14, "-100000000000000.0 is a time outside the years 1 to 9999"),
    (T, -62_135_596_801, "-62135596801 is a time outside the years 1 to 9999"),
    (T, 253_402_300_800, "253402300800 is a time outside the years 1 to 9999"),
    (T, "0001-01-01T00:00:00+01:00", "'0001-01-01T00:00:00+01:00' is a time outside the years"),
    (T, "9999-12-31T23:59:59-01:00", "'9999-12-31T23:59:59-01:00' is a time outside the years"),
    (T, "soon", "'soon' is not a time as in 2026-05-01T12:00:00Z"),
    (T, "12", "'12' is not a time as in 2026-05-01T12:00:00Z"),
    (T, True, "True is not a time: seconds since 1970, or ISO 8601 text"),
]


def as_record(kind: ColumnType, value: object, *others: object) -> object:
    """What a column stores, beside other values; or the reason, as a UsageError."""
    fitting = RecordFitter(Dataset("d", (Column("c", kind),)))
    contents = [{"c": each} for each in (value, *others)]
    fitted = fitting.fit(contents, [0.0] * len(contents))
    if fitted.reasons:
        assert list(fitted.reasons) == [0]
        raise UsageError(fitted.reasons[0].removeprefix("c: "))
    return fitted.batch["c"][0].as_py()


def as_argument(kind: ColumnType, value: object) -> object:
    """What a query sees of an argument; or a UsageError."""
    channel = Channel("c", (Column("p", kind),), 1.0, "")
    return columns(channel, [canonical(channel, {"p": value})])["p"][0].as_py()


@pytest.mark.parametrize(("kind", "value", "stored"), FITS)
def test_a_value_that_fits_a_column_fits_a_parameter(
    kind: ColumnType, value: object, stored: object
) -> None:
    odd: object = "1970-01-01" if kind is T else None  # Then values are checked one by one.
    found = [as_record(kind, value), as_record(kind, value, odd), as_argument(kind, value)]
    assert found == [stored] * 3
    assert {type(each) for each in found} == {type(stored)}


@pytest.mark.parametrize(("kind", "value", "reason"), UNFIT)
def test_a_value_that_does_not_fit_is_refused_for_the_same_reason(
    kind: ColumnType, value: object, reason: str
) -> None:
    with pytest.raises(UsageError) as record:
        as_record(kind, value)
    assert str(record.value).startswith(reason)
    with pytest.raises(UsageError) as argument:
        as_argument(kind, value)
    assert str(argument.value) == f"channel c: the argument p: {record.value}"


@given(
    st.sampled_from(ColumnType),
    st.one_of(
        st.booleans(),
        st.integers(),
        st.integers(-(2**32), 2**32),
        st.floats(),
        st.floats(-7e10, 3e11),
        st.text(),
        st.datetimes(timezones=st.none() | st.timezones()),
        st.datetimes().map(datetime.isoformat),
        st.lists(st.integers()),
    ),
)
def test_columns_and_parameters_agree(kind: ColumnType, value: object) -> None:
    found: list[object] = []
    for way in (as_record, as_argument):
        try:
            found.append(way(kind, value))
        except UsageError as error:
            found.append(str(error).removeprefix("channel c: the argument p: "))
    assert found[0] == found[1]
    assert type(found[0]) is type(found[1])


@given(st.lists(st.none() | st.integers(-(10**11), 10**12) | st.floats(-7e10, 3e11)))
def test_times_are_the_same_one_by_one(seconds: list[float | None]) -> None:
    together, reasons = fit_all(seconds, T)
    one_by_one, found = fit_all([*seconds, "1970-01-01"], T)
    assert found == reasons
    assert one_by_one[:-1].equals(together)
