"""`covering`: subscriptions forwarded and stored, by what subscribers ask for."""

from __future__ import annotations

from godwit.experiments.covering.claims import CLAIMS
from godwit.experiments.covering.figures import FIGURES
from godwit.experiments.covering.measures import MEASURES, measure
from godwit.experiments.covering.runs import MIXES, run
from godwit.lab.declaration import Case, Experiment, Scale


def scale(*, brokers: int, publishers: int, subscribers_per_publisher: int, seeds: int) -> Scale:
    cases: list[Case] = [
        {
            "mix": mix,
            "covering": covering,
            "brokers": brokers,
            "publishers": publishers,
            "subscribers_per_publisher": subscribers_per_publisher,
        }
        for mix in MIXES
        for covering in (True, False)
    ]
    return Scale(cases, seeds)


EXPERIMENT = Experiment(
    name="covering",
    title="What covering saves",
    question=(
        "How many subscriptions do brokers send each other and store, with covering and without,"
        " for different mixes of subscriptions?"
    ),
    setup="""\
A balanced tree of brokers with fan-out 2. Publishers of one stock each, and subscribers, sit at
random brokers. Subscribers join one after the other, in random order; then every publisher
publishes for five seconds, and the oracle checks every delivery. Each case is run with covering and
without; without it every subscription is sent over a link, even if an equal filter was sent.

| mix | subscriptions |
| --- | --- |
| `LS3` | the six templates below (thesis 7.1), with shares of 20%, 20%, 20%, 34%, 5% and 1% |
| `LS3 less class` | the same without the last of them |
| `symbol, high >` to `class` | each of them alone; thresholds are drawn from the stock's quotes |
| `GS2 random`, `GS3 enterprise` | rated filters of thesis 7.2: three, or two, for each symbol |
| `RS4` | thesis 7.3: 40% `symbol`, 60% with one more threshold |
""",
    scales={
        "small": scale(brokers=15, publishers=10, subscribers_per_publisher=40, seeds=3),
        "paper": scale(brokers=63, publishers=40, subscribers_per_publisher=50, seeds=5),
    },
    run=run,
    measure=measure,
    measures=MEASURES,
    claims=CLAIMS,
    figures=FIGURES,
    remarks="""\
All claims hold at both scales; those that predict a number hold exactly or, for thresholds, within
about 1% (`paper`).

- The order in which subscribers join matters. A narrow filter that was sent before a wide one is
  not withdrawn (thesis, R4), so one filter in a hundred that names only the class saves much but
  not all: `LS3` sends two thirds of what `LS3 less class` sends, both with covering.
- A subscription is stored at the subscriber's broker and at every broker that receives it, so
  tables shrink by as many entries as messages are saved. The fullest table shrinks most: it is
  where the paths meet.
- Covering also saves confirmations, one for each subscription that is not sent. They are not
  counted here.
""",
)
