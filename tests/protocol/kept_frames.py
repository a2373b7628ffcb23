"""The frames of a release as bytes, for the tests of later ones.

    python -m tests.protocol.kept_frames    # writes frames-MAJOR.MINOR.json

Run it when a release adds a kind of frame or a field, before that release; never change the file of
a release that is out.  Each entry has the bytes of one frame with a value in every field, these
values, and the decoders that accept it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import inspect

from godwit.content.filters import Filter
from godwit.content.wired import Wired
from godwit.protocol import frames
from godwit.protocol.frames import DECODE_ERRORS, KINDS, Frame, encode_body
from godwit.protocol.versions import PROTOCOL

FOLDER = Path(__file__).parent
FILTER = "class = 'STOCK' and volume > 300000"

#: The decoders of this version, by the kind of peer whose frames they read.
DECODERS: dict[str, Callable[[bytes], object]] = {
    "from client": frames.decode_from_client,
    "from broker": frames.decode_from_broker,
    "to client": frames.decode_to_client,
    "hello": frames.decode_hello,
    "welcome": frames.decode_welcome,
    "probe reply": frames.decode_probe_reply,
}


class KeptFrame(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    body: str
    """Base64."""

    values: list[Any]
    """The tag and all fields."""

    decoders: list[str]

    @property
    def bytes(self) -> bytes:
        return base64.b64decode(self.body)


def kept_files() -> list[Path]:
    """One for each release whose frames must be understood."""
    return sorted(FOLDER.glob(f"frames-{PROTOCOL.major}.*.json"))


def read_kept(path: Path) -> list[KeptFrame]:
    return msgspec.json.decode(path.read_bytes(), type=list[KeptFrame])


def sample(kind: type[Wired]) -> Wired:
    """A frame with a value in each field, most of which are not their default."""
    about = inspect.type_info(kind)
    assert isinstance(about, inspect.StructType)
    fixed = {"version": PROTOCOL.major, "minor": PROTOCOL.minor}
    values = {field.name: _value(field.type) for field in about.fields}
    return kind(**{name: fixed.get(name, value) for name, value in values.items()})


def _value(kind: inspect.Type) -> Any:
    match kind:
        case inspect.IntType(ge=least, gt=above):
            return max(least or 0, (above or 0) + 1) + 6
        case inspect.FloatType():
            return 2.5
        case inspect.BoolType():
            return True
        case inspect.StrType():
            return "name-1"
        case inspect.BytesType():
            return b"\x00\xff"
        case inspect.LiteralType(values=values):
            return values[-1]
        case inspect.EnumType(cls=members):
            return list(members)[-1]
        case inspect.CustomType(cls=cls) if cls is Filter:
            return Filter.parse(FILTER)
        case inspect.UnionType(types=types):
            return _value(next(each for each in types if not isinstance(each, inspect.NoneType)))
        case inspect.ListType(item_type=item):
            return [_value(item)]
        case inspect.VarTupleType(item_type=item):
            return (_value(item),)
        case inspect.TupleType(item_types=items):
            return tuple(map(_value, items))
        case inspect.NamedTupleType(cls=cls, fields=fields):
            return cls(*(_value(field.type) for field in fields))
        case inspect.DictType(value_type=inspect.IntType() as number):
            return {"name-1": _value(number)}
        case inspect.DictType():
            return {"class": "STOCK", "volume": 400_000, "price": -1.5, "open": True}
        case inspect.AnyType():
            return 3
        case inspect.StructType(cls=cls):
            return sample(cls)  # type: ignore[arg-type]
        case _:
            raise NotImplementedError(f"say in kept_frames.py what a sample of {kind} is")


def builtins(frame: object) -> list[Any]:
    """The tag and all fields of a frame, as JSON has them."""

    def as_text(value: object) -> str:
        assert isinstance(value, Filter)
        return value.padres()

    plain = msgspec.to_builtins(frame, enc_hook=as_text, str_keys=True)
    return msgspec.json.decode(msgspec.json.encode(plain), type=list[Any])


def kept(kind: type[Wired]) -> KeptFrame:
    frame = sample(kind)
    body = encode_body(frame)
    return KeptFrame(
        kind=kind.__name__,
        body=base64.b64encode(body).decode(),
        values=builtins(frame),
        decoders=[name for name, decode in DECODERS.items() if accepts(decode, body)],
    )


def accepts(decode: Callable[[bytes], object], body: bytes) -> bool:
    try:
        decode(body)
    except DECODE_ERRORS:
        return False
    return True


def write() -> Path:
    assert set(KINDS.values()) == set(get_args(Frame))
    path = FOLDER / f"frames-{PROTOCOL}.json"
    entries = [msgspec.to_builtins(kept(kind)) for _, kind in sorted(KINDS.items())]
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    path.write_text(f"[\n{lines}\n]\n")
    return path


if __name__ == "__main__":
    print(write())  # noqa: T201
