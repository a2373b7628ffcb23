"""Stage 3, GSH: all are assigned anew, the heaviest first, each to the least loaded broker.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 5.3: the rule of the longest
         processing time, with loads that include sharing.
Claim    Costs O(n log n + n m + holdings).
Tested   tests/policies/staged/test_shuffle.py: against a plain version, and never above the bound
         of LPT.

Of brokers with the same load the first gets the subscriber.
"""

from __future__ import annotations

import numpy as np

from godwit.errors import UsageError
from godwit.policies.staged.loads import Floats, Ints, Subscribers


def greedy_shuffle(subscribers: Subscribers, m: int, weights: Floats | None = None) -> Ints:
    """The new home of each subscriber; the present one does not matter.

    With `weights`, each stands for a group: its holdings are those of its members, each once, and
    its weight is the rate sent to all of them.
    """
    if m < 1:
        raise UsageError(f"{m} brokers; at least 1 is needed")
    home = np.zeros(subscribers.n, dtype=np.int32)
    total = np.zeros(m)
    absent = np.ones((m, subscribers.q), dtype=bool)
    rates, held, starts = subscribers.rates, subscribers.held, subscribers.starts.tolist()
    sent = subscribers.weights if weights is None else weights
    weights_of = sent.tolist()
    for i in np.argsort(-sent, kind="stable").tolist():
        j = int(total.argmin())
        mine = held[starts[i] : starts[i + 1]]
        new = mine[absent[j, mine]]
        absent[j, new] = False
        total[j] += weights_of[i] + rates[new].sum()
        home[i] = j
    return home
