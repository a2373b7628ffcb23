"""Operations that can fail give NULL instead of an error.

An error for one record or argument would fail the execution for every subscription of the channel,
again and again.  So a division by zero, the cast of a text that is not a number, and a sum that is
too large are NULL.
"""

from __future__ import annotations

from sqlglot import exp

from godwit.datacluster.sql.expressions import call

BINARY: dict[type[exp.Binary], str] = {
    exp.Add: "try_add",
    exp.Sub: "try_subtract",
    exp.Mul: "try_multiply",
    exp.Div: "try_divide",
    exp.Mod: "try_mod",
}
TRYING = frozenset(BINARY.values())


def null_on_error(tree: exp.Select) -> exp.Select:
    made = tree.copy()
    for node in reversed(list(made.walk())):  # Inner nodes first.
        if isinstance(node, exp.Binary) and type(node) in BINARY:
            node.replace(call(BINARY[type(node)], node.left, node.right))
        elif type(node) is exp.Sum:
            node.replace(call("try_sum", node.this))
        elif isinstance(node, exp.Cast):  # Spark's cast may fail.
            to = node.args["to"].copy()
            node.replace(exp.TryCast(this=node.this.copy(), to=to, safe=True))
    return made
