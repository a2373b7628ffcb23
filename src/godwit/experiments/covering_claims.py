"""What covering should save, and what it must not change.  Fixed before the first run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from godwit.lab.claims import Agreement, Claim, Shape
from godwit.lab.experiment import Results

THRESHOLDS = ("symbol, high >", "symbol, low <", "symbol, volume >")
#: Mixes in which every filter names its symbol, so that it has one publisher to go to.
NAMED = (*THRESHOLDS, "symbol", "GS2 random", "GS3 enterprise", "RS4")


def pairs(results: Results) -> Iterator[tuple[str, Results, Results]]:
    """For each mix, the runs with covering and those without."""
    for mix, runs in results.by("mix"):
        yield str(mix), runs.where(covering=True), runs.where(covering=False)


def share_saved(results: Results, mix: str) -> float:
    runs = results.where(mix=mix)
    return 1 - runs.where(covering=True).mean("forwarded") / runs.where(covering=False).mean(
        "forwarded"
    )


def never_more(results: Results) -> bool:
    return all(
        more <= less
        for _, covering, without in pairs(results)
        for name in ("forwarded", "stored", "stored_max")
        for more, less in zip(covering.values(name), without.values(name), strict=True)
    )


def the_same_deliveries(results: Results) -> bool:
    return all(
        covering.values(name) == without.values(name)
        for _, covering, without in pairs(results)
        for name in ("deliveries", "deliveries_digest", "publications_sent")
    )


def is_equal(
    one: str, other: str, *, covering: bool, mixes: tuple[str, ...]
) -> Callable[[Results], bool]:
    """In these mixes, with or without covering, two measures are the same."""

    def holds(results: Results) -> bool:
        runs = [results.where(mix=mix, covering=covering) for mix in mixes]
        return all(each.runs and each.values(one) == each.values(other) for each in runs)

    return holds


def rated_filters_at_most(results: Results) -> bool:
    """Of a symbol there are three different filters in GS2, and two in GS3."""
    return all(
        sent <= filters * once
        for mix, filters in (("GS2 random", 3), ("GS3 enterprise", 2))
        for runs in [results.where(mix=mix, covering=True)]
        for sent, once in zip(runs.values("forwarded"), runs.values("crossings_once"), strict=True)
    )


def records_error(results: Results) -> float:
    runs = [r for mix in THRESHOLDS for r in results.where(mix=mix, covering=True).runs]
    expected = sum(run.values["crossings_records"] for run in runs)
    sent = sum(run.values["forwarded"] for run in runs)
    return abs(sent / expected - 1) if expected else inf


def equal_filters_save_most(results: Results) -> bool:
    return all(share_saved(results, "symbol") > share_saved(results, mix) for mix in THRESHOLDS)


CLAIMS = (
    Claim(
        "covering-1",
        "Covering never makes brokers send or keep more subscriptions, whatever is asked for.",
        "thesis 3.2",
        Shape(
            "forwarded and stored, in sum and at the fullest broker, are at most as many",
            never_more,
        ),
    ),
    Claim(
        "covering-2",
        "Covering changes no delivery, and no path of a publication.",
        "thesis 3.2",
        Shape("the same deliveries over as many links", the_same_deliveries),
    ),
    Claim(
        "covering-3",
        "Without covering, a subscription that names its symbol crosses every link on the way to"
        " the publisher.",
        "thesis 3.1",
        Shape(
            "forwarded is the sum of the distances, exactly",
            is_equal("forwarded", "crossings", covering=False, mixes=NAMED),
        ),
    ),
    Claim(
        "covering-4",
        "With covering, of equal filters one crosses a link.",
        "thesis 3.2",
        Shape(
            "`symbol`: one for each symbol and link, exactly",
            is_equal("forwarded", "crossings_once", covering=True, mixes=("symbol",)),
        ),
    ),
    Claim(
        "covering-5",
        "A filter that names only the class is sent once over each link, however many ask for it.",
        "thesis 3.2",
        Shape(
            "`class`: one for each link, exactly",
            is_equal("forwarded", "links_told", covering=True, mixes=("class",)),
        ),
    ),
    Claim(
        "covering-6",
        "Of n filters with one threshold in random order, those cross a link that are wider than"
        " all before: 1 + 1/2 + ... + 1/n.",
        "records, Renyi 1962",
        Agreement(0.10, records_error),
    ),
    Claim(
        "covering-7",
        "Equal filters save more than thresholds do.",
        "our own",
        Shape("`symbol` saves a larger share than each of the thresholds", equal_filters_save_most),
    ),
    Claim(
        "covering-8",
        "With rated filters, as many cross a link as there are ratings: three, or two.",
        "thesis 7.2.1",
        Shape("`GS2`: at most 3, `GS3`: at most 2 for each symbol and link", rated_filters_at_most),
    ),
    Claim(
        "covering-9",
        "In the mix of the thesis, covering saves at least half of the subscription messages.",
        "our own",
        Shape("`LS3`: the share saved is at least 0.5", lambda r: share_saved(r, "LS3") >= 0.5),
    ),
    Claim(
        "covering-10",
        "One filter in a hundred that names only the class makes covering save more.",
        "our own",
        Shape(
            "`LS3` saves a larger share than the same without the class filters",
            lambda r: share_saved(r, "LS3") > share_saved(r, "LS3 less class"),
        ),
    ),
)
