"""Whose fault was it?

GodwitError
  PeerError      the other side broke the protocol: log it, drop the link, carry on
  UnreachableError  nobody answers there
  RefusedError   a broker said no: says to what, and which rule
  StayedError    a client could not move, and is where it was: says why
  UsageError     our caller asked for the impossible: say what would have been possible
    ContentError   a record or a filter breaks a rule of the language: says which and where
      TextError      ... and came as text: says the column, and what was expected there

A broken invariant of our own is an AssertionError.  Nobody catches those.
"""

from __future__ import annotations


class GodwitError(Exception):
    """Base of everything this package raises on purpose."""


class PeerError(GodwitError):
    """A neighbour or client broke the protocol."""


class UnreachableError(GodwitError):
    """A broker could not be reached."""


class RefusedError(GodwitError):
    """A broker refused what it was asked."""


class StayedError(GodwitError):
    """A client could not move to another broker; it is where it was, and nothing was lost."""


class UsageError(GodwitError):
    """The caller asked for something that cannot be."""


class ContentError(UsageError):
    """A record or a filter breaks a rule of the content language."""


class TextError(ContentError):
    """Text that is not in the content language.  Shows the text with a mark under the column."""

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
