"""The nodes, clauses and functions that a channel's query may have.

A list of what is allowed: everything else is refused.  The functions are deterministic, depend only
on their arguments and need little memory.
"""

from __future__ import annotations

from sqlglot import exp

from godwit.datacluster.sql.expressions import DIALECT
from godwit.errors import UsageError

NODES: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Select, exp.From, exp.Join, exp.Where, exp.Group, exp.Having, exp.Distinct, exp.With,
        exp.CTE, exp.Subquery, exp.Table, exp.TableAlias, exp.Order, exp.Ordered, exp.Limit,
        exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Placeholder,
        exp.Literal, exp.Boolean, exp.Null, exp.Interval, exp.Var, exp.DataType,
        exp.Paren, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE,
        exp.NullSafeEQ, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike, exp.Exists,
        exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.DPipe, exp.Case, exp.If,
    }
)  # fmt: skip
AGGREGATES: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.ArgMax, exp.ArgMin,
        exp.Stddev, exp.Variance,
    }
)  # fmt: skip
FUNCTIONS: frozenset[type[exp.Expr]] = AGGREGATES | {
    exp.Cast, exp.TryCast, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least,
    exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Sign,
    exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Atan2, exp.Radians, exp.Degrees,
    exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.Substring, exp.Concat, exp.Left, exp.Right,
    exp.Contains, exp.StartsWith, exp.EndsWith, exp.StrPosition,
    exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.Second, exp.TimestampTrunc,
    exp.TsOrDsToDate, exp.CurrentTimestamp,
}  # fmt: skip
DISTANCE = "distance"

#: The allowed clauses of kinds of nodes; hints, for example, are not among them.
CLAUSES: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_"}
        | {"order", "limit", "kind"}
    ),
    exp.Join: frozenset({"this", "on", "side", "kind"}),
    exp.Table: frozenset({"this", "alias"}),
    exp.Subquery: frozenset({"this", "alias"}),
    exp.Group: frozenset({"expressions"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.TableAlias: frozenset({"this"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Placeholder: frozenset({"this"}),
    exp.Star: frozenset(),
}
CLAUSE_NAMES = {
    "hint": "a hint",
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "windows": "WINDOW",
    "qualify": "QUALIFY",
    "using": "USING; write ON",
    "method": "NATURAL; write ON",
    "db": "a name with a dot; a channel reads datasets",
    "recursive": "RECURSIVE",
}


def check_allowed(tree: exp.Expr) -> None:
    """Check that every node of the tree, and its clauses, are allowed."""
    for node in tree.walk():
        kind = type(node)
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Identifier):
            raise UsageError(f"a channel reads datasets, and {shown(node)} is not one")
        if isinstance(node, exp.Anonymous):
            _check_function(node)
        elif kind in FUNCTIONS or kind in NODES:
            _check_clauses(node)
        elif isinstance(node, exp.Func):
            raise UsageError(f"a channel may not use the function {node.sql_name().lower()}")
        else:
            raise UsageError(f"a channel may not use {shown(node)}")


def shown(node: exp.Expr) -> str:
    """A node as text, short enough for a message."""
    text = node.sql(dialect=DIALECT, comments=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _check_function(node: exp.Anonymous) -> None:
    if node.name.lower() != DISTANCE:
        raise UsageError(f"a channel may not use the function {node.name.lower()}")
    if len(node.expressions) != 4:
        raise UsageError(f"distance takes lat1, lon1, lat2, lon2, not {shown(node)}")


def _check_clauses(node: exp.Expr) -> None:
    allowed = CLAUSES.get(type(node))
    if allowed is None:
        return
    for clause, value in node.args.items():
        if value and clause not in allowed:
            name = CLAUSE_NAMES.get(clause, clause.rstrip("_").upper())
            raise UsageError(f"a channel may not use {name}: {shown(node)}")
