"""`allocation-large`: 400 and 1,000 equal brokers, RS3 of the thesis."""

from __future__ import annotations

from godwit.experiments.allocation.figures import over_subscriptions
from godwit.experiments.allocation.large_networks import ALGORITHMS, SCALES
from godwit.experiments.allocation.measures import MEASURES, measure
from godwit.experiments.allocation.runs import run
from godwit.experiments.allocation.scales import SETUP
from godwit.experiments.allocation_large.claims import CLAIMS
from godwit.lab.declaration import Experiment, Figure

EXPERIMENT = Experiment(
    name="allocation-large",
    title="Broker allocation, 400 and 1,000 brokers",
    question="Does what holds for 80 brokers hold for a network that is nearly saturated?",
    setup=SETUP
    + """
A broker that may send 185 quotes a second can feed two others with all 84 publications a second of
72 publishers, and one that may send 240 two others with 117: BIN PACKING, whose brokers receive
nearly everything, then needs about as many brokers that forward as brokers with subscribers.
""",
    scales=SCALES,
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=(
        Figure(
            "brokers",
            "Allocated brokers (thesis, figure 7.18b).",
            over_subscriptions(ALGORITHMS, "brokers", "brokers"),
        ),
        Figure(
            "message-rate",
            "Mean incoming message rate of an allocated broker (thesis, figure 7.18d).",
            over_subscriptions(ALGORITHMS, "messages_in_per_s_mean", "messages/s"),
        ),
    ),
)
