"""`clusters-load`: the load of brokers in clusters, a tree and a hash table (CS1)."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.experiments.clusters.measures import MEASURES, measure
from godwit.experiments.clusters.overlay_setups import CLUSTERS, DHT, DHT_DIRECT, TREE
from godwit.experiments.clusters.runs import run
from godwit.experiments.clusters_load.claims import CLAIMS
from godwit.experiments.clusters_load.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale

RATIOS = (0.1, 0.5, 0.7)


def scale(
    *, brokers: int, numbers: Sequence[int], topics: int, measured_s: float, seeds: int
) -> Scale:
    overlays = [(CLUSTERS, number) for number in numbers]
    overlays += [(TREE, 0), (DHT, 0), (DHT_DIRECT, 0)]

    def case(overlay: str, clusters: int, ratio: float) -> Case:
        return {
            "overlay": overlay,
            "clusters": clusters,
            "ratio": ratio,
            "brokers": brokers,
            "topics": topics,
            "exponent": 0.0,
            "publications_per_s": float(brokers),
            "adapting_s": 0.0,
            "measured_s": measured_s,
        }

    return Scale(
        [case(*each, ratio) for ratio in RATIOS for each in overlays],
        seeds,
        once=[case(CLUSTERS, 1, ratio) for ratio in RATIOS],
    )


EXPERIMENT = Experiment(
    name="clusters-load",
    title="Load in clusters, a tree and a hash table",
    question=(
        "How is the work of forwarding publications divided over brokers, in clusters of different"
        " numbers, in a tree, and in a distributed hash table?"
    ),
    setup="""\
Setup CS1 of document 003. Every broker has one publisher, all with the same rate; a publication is
about one of so many topics, drawn uniformly. A topic interests exactly the given share of the
brokers (the matching ratio), drawn at random; each of them has one subscriber. The workload of a
seed is the same on every overlay. A load is the number of publications that a broker gets from
other brokers and sends to them.

| overlay | |
| --- | --- |
| `clusters` | rings and clusters; 1 is the single-cluster variant, which is run with one seed |
| `tree` | balanced, fan-out 2 |
| `dht` | Meghdoot's zones, in a square; publications go from zone to zone to their owner |
| `dht direct` | the same with one link from the publisher's broker to the owner |

The zones of a hash table are made with the workload as a sample: it is at its best. See decisions
[30](../decisions/0030-clusters.md) and [38](../decisions/0038-dht.md).
""",
    scales={
        "small": scale(brokers=20, numbers=(2, 5), topics=10, measured_s=20.0, seeds=1),
        "paper": scale(brokers=100, numbers=(5, 10, 20), topics=40, measured_s=10.0, seeds=2),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    remarks="""\
- **C4 even, not reproduced.** Fewer clusters have a smaller load, and divide it *less* evenly, at
  every ratio. The ring phase is the same for all brokers; what varies is the cluster phase,
  because brokers publish about different topics. The more clusters, the larger the even part.
- **C10 dht, not reproduced** at the lowest ratio with 20 clusters: every publication goes to 19
  other clusters, and interests ten brokers. There the busiest broker has more to do than in a
  hash table. With 5 and 10 clusters it has less, at all ratios.
- The hash table is at its best here: topics are uniform, and zones are made from the workload. It
  has the fewest copies and the smallest tables. Its load is less even than that of clusters: an
  owner sends a copy to each broker that wants a topic, and topics are drawn at random.
- Zone to zone or direct makes a difference for links and delay, hardly for the load: copies to
  subscribers are most of it.
- Delays begin when the first broker handles a publication. In a hash table publications of a
  publisher with different owners wait for each other before that; with one publication a second
  and links of half a millisecond they seldom do.
- The number of topics, the tree and the place of publishers are ours; the paper does not give
  them.
""",
)
