"""The common setup of the allocation experiments, in words and as cases."""

from __future__ import annotations

from collections.abc import Iterable

from godwit.lab.declaration import Case, Parameter

SETUP = """\
Setups RS1 to RS5 of the thesis (7.3.2). Publishers have one stock each and send 70 quotes a minute;
40% of the subscriptions want a whole stock, 60% have an additional inequality with a value that the
stock has shown.

| | brokers | publishers | subscriptions |
| --- | --- | --- | --- |
| equal (RS1) | 80 | 40 | 2,000 to 8,000, as many for each publisher |
| unequal (RS2) | 80: 15 full, 25 half, 40 quarter | 40 | 1,025 to 4,100; Ns i/40 each (E16) |
| large (RS3) | 400; 1,000 | 72; 100 | 16,200; 22,500 |
| small | 16 | 8 | 200, 400 |

A run has four steps. (1) MANUAL is a balanced tree with clients at random brokers. Every publisher
fills a bit vector of 1,280 bits (1,097 s; small: 140 bits), and profiles are recorded from
deliveries. At paper scale they are computed instead, by evaluating every filter for every quote: a
test shows that simulated deliveries, CBC and this give the same, and it saves hours. (2) The
algorithm makes a plan. (3) The plan is deployed as in the thesis: new brokers, the plan's tree, all
clients connected where the plan puts them. (4) One in ten of the same quotes is played again, in
100 s of virtual time (large: one in 20, 45 s; small: all): the thesis measures ten minutes.
Brokers, routing and clients are those of production; the oracle checks deliveries, at paper scale
those of one in four publications; a violation is an error.

Capacities are chosen, because the thesis does not give them: a full broker may use the bandwidth of
500 quotes a second (small: 130; 400 brokers: 185; 1,000: 240), which is 85% of what it has. Then
six stocks with 100 subscriptions each fit a broker, as the thesis's best results imply (7 of 80
brokers, 7 of 46.7 messages a second), and MANUAL with 400 or 1,000 brokers is nearly saturated.
Matching a message takes 4 ms and 10 µs for each subscription in a broker's tables. Links take
0.5 ms. Of CRAM's schemes the last one is deployed, as in the thesis.

R1, R6 and R11, and R2 for the large networks, were used to choose these capacities, after plans had
been made with 250 quotes a second and others: that they reproduce shows that one capacity explains
them, and is not independent. Equal bandwidths of all publishers were chosen after a look at R3
and R8, and CRAM's last scheme instead of the one with the fewest brokers after a look at R6.

*Message rate* means incoming publications: the thesis compares it with the 46.7 publications a
second that all publishers send. Means are over allocated brokers.
"""


def cases(
    brokers: int,
    capacity: str,
    subscriptions: Iterable[int],
    algorithms: Iterable[str],
    **more: Parameter,
) -> list[Case]:
    """A case for each size and algorithm; those of one size follow each other."""
    together = list(algorithms)
    return [
        {
            "brokers": brokers,
            "capacity": capacity,
            "subscriptions": number,
            "algorithm": algorithm,
            **more,
        }
        for number in subscriptions
        for algorithm in together
    ]
