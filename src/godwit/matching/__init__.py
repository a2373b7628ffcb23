"""The matching index: which of many filters match a record.

index.py       the index: filters are added and removed under keys, records are matched
shapes.py      a filter split into what can be hashed and a residual
groups.py      the hashed part: schema, group, shelf
scan.py        few filters: tested one by one
thresholds.py  residuals that are empty or one bound: sorted runs
boxes.py       residuals with several intervals or tests
boxtable.py    ... many of them, in a table
bitsets.py     candidates in a table, by one AND for each attribute
columns.py     bounds in a table, compared by NumPy
"""

from __future__ import annotations

from godwit.matching.index import Matches, MatchingIndex

__all__ = ["Matches", "MatchingIndex"]
