"""Stage 3, GSH: everybody is assigned anew, the heaviest first, each to the least loaded broker.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 5.3: the rule of the longest
         processing time, with loads that know about sharing.
Claim    Costs O(n log n + n m + holdings).
Tested   tests/balance/test_shuffle.py: against a plain version, and never above the bound of LPT.

Of brokers with the same load the first takes the subscriber.
"""

from __future__ import annotations

import numpy as np

from godwit.balance.model import Floats, Ints, Subscribers
from godwit.errors import UsageError


def greedy_shuffle(subscribers: Subscribers, m: int, weights: Floats | None = None) -> Ints:
    """The new home of each subscriber; where they are now does not matter.

    With `weights`, each stands for a group: it holds what anybody in it holds, once, and is sent
    that much.
    """
    if m < 1:
        raise UsageError(f"{m} brokers; one or more are possible")
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
