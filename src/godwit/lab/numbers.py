"""Results of one row as plain numbers.  Several of them are one Spark job: a job costs a third of
a second, whatever little it does.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame


def numbers(*results: DataFrame) -> dict[str, float]:
    """The columns of all results, each of which has one row.  Of equal names the first counts."""
    taken: set[str] = set()
    apart = []
    for result in results:
        apart.append(result.drop(*(taken & set(result.columns))))
        taken.update(result.columns)
    (row,) = reduce(DataFrame.crossJoin, apart).collect()
    found: dict[str, float] = row.asDict()
    return found
