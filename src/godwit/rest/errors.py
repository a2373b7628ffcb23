"""What a server answers when something is wrong, in one form, and what its caller gets.

    {"error": "Expected `float` <= 90.0", "where": "$.location.latitude"}

| status | when                                                                     |
| ------ | ------------------------------------------------------------------------ |
| 400    | the request breaks a rule; `where` is the field, as a JSON path          |
| 403    | guarded, and the caller is neither on this machine nor knows the secret  |
| 404    | no such path, or no such thing                                           |
| 405    | not with this method                                                     |
| 408    | the body did not arrive in time                                          |
| 409    | not now: it contradicts what is there                                    |
| 413    | the body is too large                                                    |
| 415    | a POST that is not application/json                                      |
| 429    | too much: after `Retry-After` seconds it may go                          |
| 500    | our fault: the log has more                                              |
| 503    | not able to: after `Retry-After` seconds it may be                       |
"""

from __future__ import annotations

import math

import msgspec

from godwit.errors import RefusedError


class Trouble(msgspec.Struct, frozen=True):
    """What went wrong, and where: a field of the request, or the operation."""

    error: str
    where: str


class RestError(RefusedError):
    """Raised by who answers, and again by who called."""

    def __init__(
        self, status: int, error: str, *, where: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(error)
        self.status = status
        self.where = where
        """The operation, unless something else is said."""
        self.retry_after_s = retry_after_s

    def headers(self) -> dict[str, str]:
        if self.retry_after_s is None:
            return {}
        return {"retry-after": str(math.ceil(self.retry_after_s))}

    def __str__(self) -> str:
        said = super().__str__()
        return f"{self.where}: {said}" if self.where else said


def invalid(error: Exception, name: str) -> RestError:
    """For a request that is not what the operation `name` takes."""
    said, _, place = str(error).partition(" - at ")  # Such as: `key` in `$.rates`
    where = place.rstrip("`").rpartition("`")[2] or "$"
    return RestError(400, f"not a request to {name}: {said}", where=where)
