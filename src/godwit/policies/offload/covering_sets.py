"""The covering subscription set (CSS) of a broker's clients, which an acceptor sends.

Departs  Computed when it is asked for, by one pass from the widest filters to the narrowest.  The
         search for a cover is bounded (content/covering.py), so that some filters may be sent that
         another one covers: that costs bytes, and changes no estimate.
"""

from __future__ import annotations

from collections.abc import Iterable

from godwit.content.covering import CoveringSet
from godwit.content.filters import Filter


def covering_filters(filters: Iterable[Filter]) -> tuple[Filter, ...]:
    """Those of the filters that no other one covers, each once."""
    distinct = sorted(dict.fromkeys(filters), key=lambda each: len(each.constraints))
    found: CoveringSet[int] = CoveringSet()
    for key, filter in enumerate(distinct):
        if found.add(key, filter) is None:
            found.step_back(key)
    return tuple(distinct[key] for key in found if found.front_of(key) is None)
