"""A query that fails nowhere: what has no value is NULL instead of an error.

What fails for one record or one argument would fail for every subscription of the channel, again
and again.  So a division by zero, a text that is no number and a sum that is too large are NULL.
"""

from __future__ import annotations

from sqlglot import exp

from godwit.datacluster.expressions import call

BINARY: dict[type[exp.Binary], str] = {
    exp.Add: "try_add",
    exp.Sub: "try_subtract",
    exp.Mul: "try_multiply",
    exp.Div: "try_divide",
    exp.Mod: "try_mod",
}
TRYING = frozenset(BINARY.values())


def failing_nowhere(tree: exp.Select) -> exp.Select:
    made = tree.copy()
    for node in reversed(list(made.walk())):  # What is inside comes first.
        if isinstance(node, exp.Binary) and type(node) in BINARY:
            node.replace(call(BINARY[type(node)], node.left, node.right))
        elif type(node) is exp.Sum:
            node.replace(call("try_sum", node.this))
        elif isinstance(node, exp.Cast):  # In Spark's dialect it is read as one that may fail.
            to = node.args["to"].copy()
            node.replace(exp.TryCast(this=node.this.copy(), to=to, safe=True))
    return made
