"""Which of many filters match a record?  Start with index.py; the rest is how it is so fast.

shapes.py                 a filter taken apart into what can be hashed and what is left
groups.py                 the hashed part: schema, group, shelf
scan.py                   a group of few filters: one by one
thresholds.py             what is left is nothing, or one bound: sorted runs
boxes.py, boxtable.py     what is left is several intervals or tests
bitsets.py, columns.py    ... and there are many of them
"""

from __future__ import annotations

from godwit.matching.index import Matches, MatchingIndex

__all__ = ["Matches", "MatchingIndex"]
