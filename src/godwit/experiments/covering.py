"""What covering saves: subscriptions forwarded and stored, by what subscribers ask for.

The runs are in subscribing.py, the claims in covering_claims.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from godwit.experiments.covering_claims import CLAIMS, pairs
from godwit.experiments.subscribing import MIXES, measure, run
from godwit.lab.experiment import Case, Experiment, Figure, Measure, Results, Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def by_mix(name: str, label: str) -> Callable[[Axes, Results], None]:
    """Two bars for each mix: with covering and without."""

    def draw(axes: Axes, results: Results) -> None:
        mixes = [mix for mix, *_ in pairs(results)]
        for covering, offset, colour in ((True, -0.2, "C0"), (False, 0.2, "C1")):
            runs = results.where(covering=covering)
            values = [runs.where(mix=mix).values(name) for mix in mixes]
            means = [sum(each) / len(each) for each in values]
            below = [mean - min(each) for mean, each in zip(means, values, strict=True)]
            above = [max(each) - mean for mean, each in zip(means, values, strict=True)]
            places = [place + offset for place in range(len(mixes))]
            bars = axes.barh(
                places,
                means,
                0.38,
                xerr=(below, above),
                color=colour,
                label="covering" if covering else "without covering",
            )
            axes.bar_label(bars, fmt="{:,.0f}", padding=8, fontsize=9)
        axes.set_yticks(range(len(mixes)), mixes)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlim(left=10)
        axes.set_xlabel(label)
        axes.grid(visible=False, axis="y")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)

    return draw


EXPERIMENT = Experiment(
    name="covering",
    title="What covering saves",
    question=(
        "How many subscriptions do brokers send each other and keep, with covering and without,"
        " depending on what subscribers ask for?"
    ),
    setup="""\
A balanced tree of brokers with fan-out 2. Publishers of one stock each, and subscribers, sit at
random brokers. Subscribers join one after the other, in random order; then every publisher
publishes for five seconds, and the oracle checks every delivery. Each case is run with covering and
without: then nothing is held back on a link, not even an equal filter.

| mix | what is asked for |
| --- | --- |
| `LS3` | the six templates below (thesis 7.1), with shares of 20%, 20%, 20%, 34%, 5% and 1% |
| `LS3 less class` | the same without the last of them |
| `symbol, high >` to `class` | each by itself; a threshold is a value the stock has shown |
| `GS2 random`, `GS3 enterprise` | rated filters of thesis 7.2: three, or two, for each symbol |
| `RS4` | thesis 7.3: 40% `symbol`, 60% with one threshold more |
""",
    scales={
        "small": scale(brokers=15, publishers=10, subscribers_per_publisher=40, seeds=3),
        "paper": scale(brokers=63, publishers=40, subscribers_per_publisher=50, seeds=5),
    },
    run=run,
    measure=measure,
    measures={
        "forwarded": Measure("messages", "subscriptions that brokers sent each other"),
        "links_told": Measure("links", "that carried a subscription; each direction is one"),
        "stored": Measure("subscriptions", "in the tables of all brokers at the end"),
        "stored_mean": Measure("subscriptions", "in the table of a broker, mean"),
        "stored_max": Measure("subscriptions", "in the fullest table"),
        "publications_sent": Measure("messages", "publications that brokers sent each other"),
        "deliveries": Measure("publications", "handed to subscribers"),
        "deliveries_digest": Measure("", "the same for the same deliveries"),
        "crossings": Measure(
            "messages", "expected if each subscription went to the publisher of its symbol"
        ),
        "crossings_once": Measure("messages", "... if one of each symbol crossed a link"),
        "crossings_records": Measure(
            "messages", "... if those did that are wider than all of the symbol before"
        ),
    },
    claims=CLAIMS,
    figures=(
        Figure(
            "forwarded",
            "Subscriptions that brokers sent each other, from the lowest seed to the highest.",
            by_mix("forwarded", "subscription messages between brokers"),
        ),
        Figure(
            "stored",
            "Subscriptions in the tables of all brokers together.",
            by_mix("stored", "subscriptions stored, all brokers"),
        ),
        Figure(
            "fullest",
            "Subscriptions in the fullest table: matching takes the longer, the more there are.",
            by_mix("stored_max", "subscriptions at the fullest broker"),
        ),
    ),
    remarks="""\
All claims hold at both scales, those that predict a number exactly or, for thresholds, within about
1% (`paper`).

- What is sent depends on the order in which subscribers join. A narrow filter that was sent before
  a wide one stays sent (thesis, R4), so one filter in a hundred that names only the class saves
  much and not all: `LS3` sends two thirds of what `LS3 less class` sends, both with covering.
- A subscription is stored where it was asked for and wherever it was sent, so tables shrink by as
  many entries as messages are saved, and the fullest one most: it is where the paths meet.
- Covering also holds back confirmations, one for each subscription that is not sent. They are not
  counted here.
""",
    uses=("experiments.watched",),
)
