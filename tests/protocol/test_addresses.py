"""Addresses, right and wrong."""

from __future__ import annotations

from typing import Any

import pytest

from godwit.errors import UsageError
from godwit.protocol.addresses import address, separate, url_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:7401", ("127.0.0.1", 7401)),
        ("example.org:0", ("example.org", 0)),
        ("[::1]:65535", ("::1", 65_535)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert address(text) == expected
    assert url_address(f"godwit://{text}") == expected
    assert url_address(f"godwit://{text}/") == expected


@pytest.mark.parametrize("text", ["", "host", "host:", ":80", "host:65536", "host:-1", "host:٣"])
def test_anything_else_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="write HOST:PORT"):
        address(text)


@pytest.mark.parametrize(
    "url", ["localhost:7401", "http://localhost:7401", "godwit://localhost:7401/x", "godwit://[::1"]
)
def test_a_broker_has_a_godwit_url(url: str) -> None:
    with pytest.raises(UsageError, match="godwit://HOST:PORT"):
        url_address(url)


@pytest.mark.parametrize("urls", [None, 7400, ["godwit://a:1", None]])
def test_what_is_no_text_is_no_address(urls: Any) -> None:
    with pytest.raises(UsageError, match="an address is text, godwit://HOST:PORT, not of type"):
        separate([urls])
