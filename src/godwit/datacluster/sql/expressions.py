"""Small tools to build Spark SQL as trees, not as text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import sqlglot
from sqlglot import exp

DIALECT = "spark"


@cache
def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read=DIALECT)


def expression(template: str, **parts: exp.Expr) -> exp.Expr:
    """The tree of a template, with `parts` for its `:names`.  Templates are constants."""
    tree = exp.paren(_parsed(template).copy())
    for marker in list(tree.find_all(exp.Placeholder)):
        marker.replace(_parenthesized(parts[marker.name].copy()))
    return tree


def call(function: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=function, expressions=[argument.copy() for argument in arguments])


def double(value: exp.Expr) -> exp.Expr:
    return exp.cast(value.copy(), "DOUBLE", dialect=DIALECT)


def integer(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def real(value: float) -> exp.Expr:
    return double(exp.Literal.number(value))


def column(name: str, table: str) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """`a AND (b AND c)` as a, b, c."""
    if condition is None:
        return
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        yield from conjuncts(inner.left)
        yield from conjuncts(inner.right)
    else:
        yield inner


def _parenthesized(part: exp.Expr) -> exp.Expr:
    return exp.paren(part, copy=False) if isinstance(part, exp.Binary) else part
