"""`allocation-large-plans`: the plans of `allocation-large`, without playing the publications."""

from __future__ import annotations

from godwit.experiments.allocation.large_networks import SCALES
from godwit.experiments.allocation.measures import PLANNED
from godwit.experiments.allocation.scales import SETUP
from godwit.experiments.allocation_large_plans.claims import CLAIMS
from godwit.experiments.allocation_large_plans.runs import measure, run
from godwit.lab.declaration import Experiment

EXPERIMENT = Experiment(
    name="allocation-large-plans",
    title="Broker allocation, plans for 400 and 1,000 brokers",
    question="Does what holds for 80 brokers hold for plans of a network that is nearly saturated?",
    setup=SETUP
    + """
Here plans are made and not deployed: rates are those that the plans expect. With 80 brokers the
incoming rate of each broker was within 2.3% of that (plan-1 of `allocation-homogeneous`).
""",
    scales=SCALES,
    run=run,
    measure=measure,
    measures=PLANNED,
    claims=CLAIMS,
    remarks="""\
Plans, of one seed. Deploying them means simulating MANUAL with 400 and 1,000 brokers as well,
which takes hours; `allocation-large` is declared for that and has not been run.

R1, R2, R6: with 400 brokers CRAM-IOU needs 73, one more than any plan, and BIN PACKING 129,
because a broker that receives all 84 publications a second can feed two others. With 1,000
brokers they need 101 and 140. So 47% fewer is nearly reached (43%) where brokers can forward
little, as the remarks of `allocation-homogeneous` expect.

plan-3: with 1,000 brokers the 225 subscriptions of a stock fill three quarters of a broker, so
each of 100 brokers has one stock, receives nothing else (1.17 messages a second), and has no
room for a second one; one more connects them. The bound, 77, counts bytes and lets a stock be
divided. CRAM merges subscriptions with the same traffic and does not divide them again, and
this is its last scheme, as in the thesis.
""",
)
