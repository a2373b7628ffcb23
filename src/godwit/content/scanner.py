"""A scanner over text that reports columns in its errors."""

from __future__ import annotations

import re

from godwit.errors import TextError

_BLANK = re.compile(r"\s*")
_WORD = re.compile(r"\w+")


class Scanner:
    """A position in a text.  Every method skips blanks first; columns count from 1."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._position = 0

    def mark(self) -> int:
        """The column of the next character that is not blank."""
        blank = _BLANK.match(self.text, self._position)
        assert blank, "the pattern matches the empty string"
        self._position = blank.end()
        return self._position + 1

    @property
    def at_end(self) -> bool:
        return self.mark() > len(self.text)

    def at(self, symbol: str) -> bool:
        self.mark()
        return self.text.startswith(symbol, self._position)

    def take(self, symbol: str) -> bool:
        """Step over `symbol` if it comes next."""
        if not self.at(symbol):
            return False
        self._position += len(symbol)
        return True

    def match(self, pattern: re.Pattern[str], expected: str) -> str:
        self.mark()
        found = pattern.match(self.text, self._position)
        if not found:
            raise self.error(expected)
        self._position = found.end()
        return found.group()

    def quoted(self) -> str | None:
        """A string in single or double quotes, doubled quotes undone; None if none comes next."""
        start = self.mark()
        quote = self.text[self._position : self._position + 1]
        if quote not in ("'", '"') or not quote:
            return None
        parts: list[str] = []
        position = self._position + 1
        while True:
            end = self.text.find(quote, position)
            if end < 0:
                raise TextError(
                    self.text, start, f"a closing {quote} for the string that opens here"
                )
            parts.append(self.text[position:end])
            position = end + 1
            if not self.text.startswith(quote, position):
                self._position = position
                return quote.join(parts)
            position += 1

    def expect(self, symbol: str, expected: str) -> None:
        if not self.take(symbol):
            raise self.error(expected)

    def expect_word(self, word: str, expected: str) -> None:
        self.mark()
        found = _WORD.match(self.text, self._position)
        if not found or found.group().lower() != word:
            raise self.error(expected)
        self._position = found.end()

    def expect_end(self, expected: str) -> None:
        if not self.at_end:
            raise self.error(expected)

    def error(self, expected: str) -> TextError:
        return TextError(self.text, self.mark(), expected)
