"""`clusters-optimum`: traffic over the number of clusters (C1, C2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from godwit.experiments.clusters.measures import MEASURES, measure
from godwit.experiments.clusters.overlay_setups import CLUSTERS
from godwit.experiments.clusters.runs import run
from godwit.experiments.clusters_optimum.claims import CLAIMS
from godwit.experiments.clusters_optimum.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale

#: For each partition: how many of the topics, the matching ratio.
POPULARITY = {"unpopular": (0.25, 0.1), "average": (1.0, 0.25), "popular": (2.0, 0.5)}


def scale(*, brokers: int, topics: int, numbers: Mapping[str, Sequence[int]]) -> Scale:
    cases: list[Case] = [
        {
            "overlay": CLUSTERS,
            "partition": partition,
            "clusters": clusters,
            "ratio": ratio,
            "brokers": brokers,
            "topics": round(share * topics),
            "exponent": 0.0,
            "publications_per_s": float(brokers),
            "adapting_s": 0.0,
            "measured_s": 10.0,
        }
        for partition, (share, ratio) in POPULARITY.items()
        for clusters in numbers[partition]
    ]
    return Scale(cases, seeds=1)


EXPERIMENT = Experiment(
    name="clusters-optimum",
    title="The best number of clusters",
    question="With how many clusters do brokers send the fewest messages, and is it the formula's?",
    setup="""\
Three parts of an event space, as partitions of the multi-cluster architecture of document 003
(section 3.2): the more popular one has more topics, and more brokers with a subscription to each.
Every broker publishes once a second for ten seconds, uniformly over topics; every subscriber joins
once. Each part is run alone, with several numbers of clusters. Traffic is the number of
publications and subscriptions between brokers, as equation (1) counts it; confirmations are not
counted.
""",
    scales={
        "small": scale(
            brokers=24,
            topics=24,
            numbers={"unpopular": (1, 2, 4), "average": (1, 4, 5, 12), "popular": (4, 10, 11, 24)},
        ),
        "paper": scale(
            brokers=60,
            topics=40,
            numbers={
                "unpopular": (1, 2, 3, 4, 6, 12, 30),
                "average": (1, 3, 8, 9, 10, 20, 60),
                "popular": (3, 10, 20, 21, 22, 23, 30, 60),
            },
        ),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    remarks="""\
- **C1, not reproduced** for the popular part: m* is 21.9, and 20 clusters have the least traffic,
  28,213 messages against 28,378 with 22. The equation takes all clusters for equal. 20
  divides the 60 brokers; with 22 clusters some have three brokers and some two, and a broker has
  1.80 mates on average instead of the equation's 1.73. Near m* the traffic changes so little that
  this decides. For the other parts the best numbers are 3 and 9, with m* at 2.6 and 8.9. What
  `clusters = "auto"` uses counts the real sizes (`ClusterLoad.messages`), and gives 3, 9 and 20.
- Equation (1) itself is off by 0.7% at most.
""",
)
