"""Log lines on standard error, one for each event, as text or JSON."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import msgspec

from godwit.errors import UsageError

LogFormat = Literal["text", "json"]
LEVELS = ("debug", "info", "warning", "error")

#: Libraries that log every step.
CHATTY = ("httpx", "httpcore", "py4j", "pyspark", "uvicorn")

#: In a value, these look like the end of it, or like another field.
_AMBIGUOUS = frozenset(' "=\\')
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}


def configure(level: str, format: LogFormat, **context: str) -> None:
    """Log from `level` on; every line carries `context`, such as the id of the broker."""
    if level.lower() not in LEVELS:
        raise UsageError(f"no log level {level!r}; choose from {', '.join(LEVELS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json(context) if format == "json" else _Text(context))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for library in CHATTY:
        logging.getLogger(library).setLevel(logging.WARNING)


class _Fields(logging.Formatter):
    def __init__(self, context: dict[str, str]) -> None:
        super().__init__()
        self._context = context

    def _fields(self, record: logging.LogRecord) -> dict[str, object]:
        given = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        if record.exc_info:
            given["error"] = self.formatException(record.exc_info)
        return {**self._context, **given}


class _Json(_Fields):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": round(record.created, 6),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **self._fields(record),
        }
        return msgspec.json.encode(line, enc_hook=str).decode()


class _Text(_Fields):
    def format(self, record: logging.LogRecord) -> str:
        time = self.formatTime(record, "%H:%M:%S")
        fields = " ".join(f"{key}={_shown(value)}" for key, value in self._fields(record).items())
        return f"{time} {record.levelname.lower():7} {record.getMessage():10} {fields}"


def _shown(value: object) -> str:
    """As it is, or in quotes, as in JSON, if otherwise its end could not be seen."""
    text = str(value)
    is_plain = text.isprintable() and text and not _AMBIGUOUS.intersection(text)
    return text if is_plain else msgspec.json.encode(text).decode()
