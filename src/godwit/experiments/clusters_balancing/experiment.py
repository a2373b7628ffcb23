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
    remarks="",
)
