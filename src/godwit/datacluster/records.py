"""Raw records against the columns of a dataset: a batch of those that fit, reasons for the others.

    contents (publications, or JSON from HTTP) --> Fitted(batch, places, reasons)

A column takes the attribute of the same name.  Attributes without a column are ignored: publishers
may say more than a dataset keeps.  A missing attribute, or null, is no value; only the key must
have one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import pyarrow as pa

from godwit.datacluster.dataset import ACCEPTED, Dataset
from godwit.datacluster.schemas import logged
from godwit.datacluster.values import as_array

#: A record: attributes and values, or the text of a JSON object.
Content: TypeAlias = Mapping[str, object] | bytes

_decode = msgspec.json.Decoder(dict[str, object]).decode
_NOTHING: dict[str, object] = {}


@dataclass(frozen=True, slots=True)
class Fitted:
    """What became of some records."""

    batch: pa.RecordBatch
    """Those that fit, in their order."""

    places: list[int]
    """Where they were."""

    reasons: dict[int, str]
    """The others."""


class Fitting:
    """The columns of one dataset, and what fits into them."""

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
            array, unfit = as_array(values, column.type)
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
                reasons[place] = f"no JSON object: {error}"
                records.append(_NOTHING)
        elif isinstance(content, Mapping):
            records.append(content)
        else:
            reasons[place] = f"a record has attributes and values; got {type(content).__name__}"
            records.append(_NOTHING)
    return records


def as_text(content: Content, *, length_max: int) -> str:
    """A record for people to look at, as it came, cut if it is long."""
    if isinstance(content, bytes):
        return content[: 4 * length_max].decode(errors="replace")[:length_max]
    try:
        return msgspec.json.encode(content, enc_hook=repr).decode()[:length_max]
    except (msgspec.MsgspecError, UnicodeError, TypeError, ValueError, RecursionError):
        return ascii(content)[:length_max]
