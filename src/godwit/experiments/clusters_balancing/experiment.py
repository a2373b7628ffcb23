"""`clusters-balancing`: dynamic balancing in clusters if few brokers publish most (CS2)."""

from __future__ import annotations

from godwit.experiments.clusters.measures import MEASURES, measure
from godwit.experiments.clusters.overlay_setups import BALANCED, CLUSTERS
from godwit.experiments.clusters.runs import run
from godwit.experiments.clusters_balancing.claims import CLAIMS
from godwit.experiments.clusters_balancing.figures import FIGURES
from godwit.lab.declaration import Case, Experiment, Scale

RATIOS = (0.25, 0.5, 0.75)


def scale(
    *, brokers: int, clusters: int, rate: float, threshold: float, adapting_s: float, seeds: int
) -> Scale:
    cases: list[Case] = [
        {
            "overlay": overlay,
            "clusters": clusters,
            "ratio": ratio,
            "brokers": brokers,
            "topics": 20,
            "exponent": 1.0,
            "publications_per_s": rate,
            "threshold": threshold,
            "adapting_s": adapting_s,
            "measured_s": 20.0,
        }
        for ratio in RATIOS
        for overlay in (CLUSTERS, BALANCED)
    ]
    return Scale(cases, seeds)


EXPERIMENT = Experiment(
    name="clusters-balancing",
    title="Dynamic balancing in clusters",
    question=(
        "If few brokers publish most, does handing ring and cluster load to mates keep every broker"
        " near the threshold, and what does it cost?"
    ),
    setup="""\
Setup CS2 of document 003: clusters of ten brokers, subscriptions uniform, publications Zipf over
brokers with exponent 1, a threshold for messages in and out of a broker. A load is the number of
publications that a broker gets from other brokers and sends to them, averaged over the last 20
seconds; before that brokers have time to balance
([decision 33](../decisions/0033-cluster-balancing.md)). The same runs without balancing are the
baseline. At the scale `small` there are five clusters of five brokers, with the same number of
publications and the same threshold.
""",
    scales={
        "small": scale(
            brokers=25, clusters=5, rate=100.0, threshold=150.0, adapting_s=40.0, seeds=1
        ),
        "paper": scale(
            brokers=100, clusters=10, rate=100.0, threshold=150.0, adapting_s=60.0, seeds=1
        ),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    remarks="""\
- **One seed.** A run at this scale takes minutes; more: `--seeds 5`.
- **C5, not reproduced.** The paper does not give the exponent of its Zipf distribution, nor which
  messages count. With exponent 1 and publications only, half of the brokers are in [50, 100) and
  none has more than 250 messages/s at 25%; equation (1) gives the same mean, 63, and the paper's
  own bins imply a mean of about 109.
- **C6 bin, not reproduced.** Brokers that are below the threshold hand nothing over, so the bins
  below it stay as they were: balancing takes the top away, and does not make loads equal.
- **C6 high, not reproduced at 50%.** At 25% the busiest broker comes down from 246 to 147
  messages/s; at 50% from 314 to 220, where at most 180 were asked for. The busiest publisher has
  19 publications/s. A handover of it for one other cluster saves as much as the copy for the helper
  costs, one for two clusters adds 57 messages/s to the helper, and its cluster publish load adds
  even more; helpers have 42 left on average. The paper hands over *portions* of the publications of
  a publisher, which fit; here whole publishers are handed over, because only then their order is
  kept (departure 1 of `overlay/clusters/steered_routing.py`).
- **C8 hops, not reproduced.** Handovers add a link to a part of the deliveries: 1.8 links become
  2.0 at 25% (11%), 2.3 at 50% (26%) and 2.0 at 75% (11%). The number of messages rises by 3% at
  most.
- At 75% the mean, 153 messages/s, is above the threshold itself (C9): nearly no broker can help.
""",
)
