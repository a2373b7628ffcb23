"""Records against the columns of a dataset: a batch of those that fit, reasons for the others.

    contents (publications, or JSON from HTTP) --> Fitted(batch, places, reasons)

A column takes the attribute of the same name.  Attributes without a column are ignored: publishers
may send more than a dataset stores.  A missing attribute or null becomes null; only the key must
have a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import pyarrow as pa

from godwit.datacluster.model.column_values import fit_all
from godwit.datacluster.model.dataset import ACCEPTED, Dataset
from godwit.datacluster.model.schemas import logged

#: A record: attributes and values, or the text of a JSON object.
Content: TypeAlias = Mapping[str, object] | bytes

_decode = msgspec.json.Decoder(dict[str, object]).decode
_NOTHING: dict[str, object] = {}


@dataclass(frozen=True, slots=True)
class Fitted:
    """The records that fit, and the reasons why others do not."""

    batch: pa.RecordBatch
    """The records that fit, in their order."""

    places: list[int]
    """The places of these records among all."""

    reasons: dict[int, str]
    """Why a record does not fit, by its place."""


class RecordFitter:
    """Fits records to the columns of one dataset."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self.schema = logged(dataset)

    def fit(self, contents: Sequence[Content], accepted_s: Sequence[float]) -> Fitted:
        reasons: dict[int, str] = {}
        records = _records(contents, reasons)
        arrays = []
        for column in self._dataset.columns:
            name = column.name
            values = [record.get(name) for record in records]
            array, unfit = fit_all(values, column.type)
            for place, reason in unfit.items():
                reasons.setdefault(place, f"{name}: {reason}")
            if name == self._dataset.key and array.null_count:
                for place, value in enumerate(values):
                    if value is None:
                        reasons.setdefault(place, f"{name}: the key must have a value")
            arrays.append(array)
        arrays.append(pa.array(accepted_s, self.schema.field(ACCEPTED).type))
        batch = pa.record_batch(arrays, schema=self.schema)
        places = list(range(len(records)))
        if reasons:
            places = [place for place in places if place not in reasons]
            batch = batch.take(pa.array(places, pa.int64()))
        return Fitted(batch, places, reasons)


def _records(
    contents: Sequence[Content], reasons: dict[int, str]
) -> Sequence[Mapping[str, object]]:
    records: list[Mapping[str, object]] = []
    for place, content in enumerate(contents):
        if isinstance(content, bytes):
            try:
                records.append(_decode(content))
            except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
                reasons[place] = f"not a JSON object: {error}"
                records.append(_NOTHING)
        elif isinstance(content, Mapping):
            records.append(content)
        else:
            reasons[place] = (
                f"a record is a mapping of attributes to values, not {type(content).__name__}"
            )
            records.append(_NOTHING)
    return records


def as_text(content: Content, *, length_max: int) -> str:
    """A record as text for the quarantine, cut to `length_max`."""
    if isinstance(content, bytes):
        return content[: 4 * length_max].decode(errors="replace")[:length_max]
    try:
        return msgspec.json.encode(content, enc_hook=repr).decode()[:length_max]
    except (msgspec.MsgspecError, UnicodeError, TypeError, ValueError, RecursionError):
        return ascii(content)[:length_max]
