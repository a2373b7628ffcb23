"""Setup PS1 of Publiy's evaluation (paper 002, section 7), in words and as cases.

Not imported by runs: a change of words does not void them.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.lab.declaration import Case

STRATEGIES = ("S0", "S1", "S2", "SH")

SETUP = """\
A balanced tree in which a broker has three links, as in configuration C1. Each broker has one
publisher, and one local subscriber with all subscriptions of that broker: the paper's brokers log
what they deliver. Topics have Zipf popularity; a publication matches subscriptions at 9.7 of 120
brokers (DT1, sparse) or 28.7 (DT2, dense), and at the same share of brokers in smaller networks.
The rate is 3,600 publications a minute (the paper prints "msg/sec", erratum E30). Δ is 4; a fanout
of 35 is more than there are brokers within Δ, so all useful soft links are opened. A link takes 1
ms, and a broker 0.7 ms for a publication, so that S0 has about the paper's average delay of 14 ms.

A network is set up once for each dataset and seed, and forked for each strategy: all strategies
have the same subscriptions and the same publications. Links are evaluated every 10 s (the paper:
about 20 s); the first 60 s are not measured. The oracle checks every delivery.

Scaled: 1,200 subscriptions (the paper: 6,500) and 120 s of publications (600 s). The number of
topics is chosen so that a publication has as many matching brokers as in the paper.
"""


def cases(
    brokers: int, subscriptions: int, datasets: Sequence[str], strategies: Sequence[str]
) -> list[Case]:
    """The cases of PS1."""
    return [
        {
            "brokers": brokers,
            "dataset": dataset,
            "subscriptions": subscriptions,
            "rate": 3600,
            "fanout": 35,
            "strategy": strategy,
        }
        for dataset in datasets
        for strategy in strategies
    ]
