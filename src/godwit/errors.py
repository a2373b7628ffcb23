"""All errors that this package raises on purpose, by who has to act on them.

GodwitError
  PeerError         a peer broke the protocol: log it, drop the connection, go on
  UnreachableError  a broker or server does not answer
  RefusedError      a broker or server refused a request: names the request and the rule
    EndedError        ... or has ended what it had granted: a subscription, a session
      TakenOverError    another client has taken over the name of this one
  NotReadyError     the network was not complete in time: names the brokers that are missing
  StayedError       a client could not move and stays at its broker: names the reason
  UsageError        the caller asked for something impossible: says what is possible
    ContentError      a record or a filter breaks a rule of the language: says which and where
      TextError         text cannot be parsed: names the column and what was expected there

A broken invariant of this package itself is an AssertionError, which is not caught.
"""

from __future__ import annotations


class GodwitError(Exception):
    """Base of everything this package raises on purpose."""


class PeerError(GodwitError):
    """A neighbour, client or broker broke the protocol."""


class UnreachableError(GodwitError):
    """A broker or server could not be reached."""


class RefusedError(GodwitError):
    """A broker or server refused a request."""


class EndedError(RefusedError):
    """A broker or server has ended what it had granted before: a subscription, a session."""


class TakenOverError(EndedError):
    """Another client has taken over the name of this one; its session has ended."""


class NotReadyError(GodwitError):
    """The network was not complete in time."""

    def __init__(self, reason: str, *, missing: tuple[str, ...] = ()) -> None:
        self.missing = missing
        """The brokers that are not there; the address, if a name is not known."""
        super().__init__(reason)


class StayedError(GodwitError):
    """A client could not move to another broker; it stays at its broker, and nothing is lost."""


class UsageError(GodwitError):
    """The caller asked for something impossible."""


class ContentError(UsageError):
    """A record or a filter breaks a rule of the content language."""


class TextError(ContentError):
    """Text that cannot be parsed.  The message shows it with a caret under the column."""

    def __init__(self, text: str, column: int, expected: str) -> None:
        self.text = text
        self.column = column
        self.expected = expected
        super().__init__(f"column {column}: expected {expected}\n{_excerpt(text, column)}")


def _excerpt(text: str, column: int) -> str:
    """The part of `text` around `column` (counted from 1) on one line, and a caret below it."""
    start = max(0, column - 41)
    shown = text[start : column + 39].translate({ord(c): " " for c in "\r\n\t"})
    return f"  {shown}\n  {' ' * (column - 1 - start)}^"
