"""Addresses of brokers as text: `HOST:PORT`, `godwit://HOST:PORT`, several with commas."""

from __future__ import annotations

import os
from collections.abc import Iterable
from urllib.parse import urlsplit

from godwit.errors import UsageError


def address(text: str) -> tuple[str, int]:
    """`HOST:PORT` as a pair."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise UsageError(f"{text!r} is not an address: write HOST:PORT")
    return host.strip("[]"), int(port)


def url_address(url: str) -> tuple[str, int]:
    """`godwit://HOST:PORT` as a pair."""
    try:
        parts = urlsplit(url)
    except ValueError:  # A bracket that is not closed.
        parts = urlsplit("")
    if parts.scheme != "godwit" or parts.path not in ("", "/"):
        raise UsageError(f"{url!r} is not the address of a broker: write godwit://HOST:PORT")
    return address(parts.netloc)


def separate(urls: Iterable[str | Iterable[str]]) -> list[str]:
    """Addresses one by one: each text may have several, separated by commas."""
    texts = []
    for url in urls:
        several = [url] if isinstance(url, str) or not isinstance(url, Iterable) else url
        texts += [_text(each) for each in several]
    found = [each.strip() for text in texts for each in text.split(",")]
    if not found:
        raise UsageError("there is no address: write godwit://HOST:PORT, or several")
    return list(dict.fromkeys(found))


def _text(url: object) -> str:
    if not isinstance(url, str):
        kind = type(url).__name__
        raise UsageError(f"an address is text, godwit://HOST:PORT, not of type {kind}")
    return url


def why(error: OSError) -> str:
    """Why an address cannot be used, in the system's words only."""
    return str(error) if error.errno is None else os.strerror(error.errno).lower()
