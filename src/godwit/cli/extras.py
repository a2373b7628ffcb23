"""Commands whose packages are optional say in one sentence which extra is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from godwit.distribution import install_hint
from godwit.errors import UsageError


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """For imports that the `extra` installs: without it, `what` is refused with what to do."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "godwit"):  # A fault of ours.
            raise
        raise UsageError(f"{what} needs the package {package}: {install_hint(extra)}") from None
