"""Errors over HTTP: what a server answers, and what its caller gets raised.

    {"error": "Expected `float` <= 90.0", "where": "$.location.latitude"}

| status | when                                                                     |
| ------ | ------------------------------------------------------------------------ |
| 400    | the request breaks a rule; `where` is the field, as a JSON path          |
| 403    | guarded, and the caller is neither on this machine nor sends the secret  |
| 404    | unknown path, or unknown object                                          |
| 405    | wrong method                                                             |
| 408    | the body did not arrive in time                                          |
| 409    | conflict with the present state                                          |
| 413    | the body is too large                                                    |
| 415    | a POST that is not application/json                                      |
| 429    | too many requests; retry after `Retry-After` seconds                     |
| 500    | internal error; see the log of the server                                |
| 503    | temporarily impossible; retry after `Retry-After` seconds                |
"""

from __future__ import annotations

import math

import msgspec

from godwit.errors import RefusedError


class Trouble(msgspec.Struct, frozen=True):
    """The body of an error: what is wrong, and where: a field of the request, or the operation."""

    error: str
    where: str


class RestError(RefusedError):
    """Raised by a handler, and again at the caller."""

    def __init__(
        self, status: int, error: str, *, where: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(error)
        self.status = status
        self.where = where
        """The field of the request that is wrong; "" stands for the operation."""
        self.retry_after_s = retry_after_s

    def headers(self) -> dict[str, str]:
        if self.retry_after_s is None:
            return {}
        return {"retry-after": str(math.ceil(self.retry_after_s))}

    def __str__(self) -> str:
        said = super().__str__()
        return f"{self.where}: {said}" if self.where else said


def invalid(error: Exception, name: str) -> RestError:
    """The error for a request that does not have the form of the operation `name`."""
    said, _, place = str(error).partition(" - at ")  # Such as: `key` in `$.rates`
    where = place.rstrip("`").rpartition("`")[2] or "$"
    return RestError(400, f"not a request to {name}: {said}", where=where)
