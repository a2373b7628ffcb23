"""Splits a text with several statements at the semicolons between them.

A semicolon within a string or a comment does not separate.  Strings and comments are those of
Spark's SQL, as in the queries of channels: a backslash escapes a quote.
"""

from __future__ import annotations

import sqlglot
from sqlglot import TokenType
from sqlglot.errors import TokenError

from godwit.errors import UsageError


def split(text: str) -> list[str]:
    """The statements in their order, without comments around them and without the semicolons."""
    try:
        tokens = sqlglot.tokenize(text, read="spark")
    except TokenError:
        raise UsageError(
            "the statements cannot be separated: a string, name or comment has no closing quote,"
            " ` or */"
        ) from None
    statements = []
    start = end = 0
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            statements.append(text[start:end])
            start = end = token.end + 1
        else:
            start = token.start if start == end else start
            end = token.end + 1
    statements.append(text[start:end])
    return [statement for statement in statements if statement]
