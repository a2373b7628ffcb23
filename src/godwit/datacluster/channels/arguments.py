"""Checks the arguments of a subscription against the parameters of its channel.

Arguments that fit are encoded in a canonical form: equal arguments are equal bytes.  They are only
ever used as values, never as text of a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.column_values import UnfitError, fit
from godwit.datacluster.model.dataset import Column
from godwit.datacluster.model.schemas import ARROW
from godwit.errors import UsageError


def canonical(channel: Channel, arguments: Mapping[str, object]) -> bytes:
    """The values in the order of the parameters; UsageError names an argument that does not fit."""
    given: dict[str, object] = {}
    for name, value in arguments.items():
        if not isinstance(name, str) or name.lower() in given:
            raise UsageError(f"channel {channel.name}: the argument {name!r} is given twice")
        given[name.lower()] = value
    values = []
    for parameter in channel.parameters:
        if parameter.name.lower() not in given:
            raise UsageError(f"channel {channel.name} needs the argument {parameter.name}")
        values.append(_fitted(channel, parameter, given.pop(parameter.name.lower())))
    if given:
        raise UsageError(f"channel {channel.name} has no parameter {next(iter(given))[:64]!r}")
    return msgspec.json.encode(values)


def columns(channel: Channel, rows: Sequence[bytes]) -> dict[str, pa.Array]:
    """Canonical arguments as columns, named like the parameters in lower case."""
    decoder = msgspec.json.Decoder(list[Any])
    decoded = [decoder.decode(row) for row in rows]
    return {
        parameter.name.lower(): pa.array(
            [values[place] for values in decoded], type=ARROW[parameter.type]
        )
        for place, parameter in enumerate(channel.parameters)
    }


def _fitted(channel: Channel, parameter: Column, value: object) -> object:
    said = f"channel {channel.name}: the argument {parameter.name}"
    if value is None:
        raise UsageError(f"{said} must have a value")
    try:
        fitted = fit(value, parameter.type)
    except UnfitError as error:
        raise UsageError(f"{said}: {error}") from None
    return fitted + 0.0 if isinstance(fitted, float) else fitted  # -0.0 and 0.0 are equal.
