"""What covering should save and must not change.  The rules were fixed before the first run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, ShapeRule

THRESHOLDS = ("symbol, high >", "symbol, low <", "symbol, volume >")
#: Mixes in which every filter names its symbol, and so has one publisher.
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
    """In these mixes, with or without covering, two measures are equal."""

    def holds(results: Results) -> bool:
        runs = [results.where(mix=mix, covering=covering) for mix in mixes]
        return all(each.values(one) == each.values(other) for each in runs)

    return holds


def rated_filters_at_most(results: Results) -> bool:
    """GS2 has three different filters for a symbol, GS3 two."""
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
    return abs(sent / expected - 1)


def equal_filters_save_most(results: Results) -> bool:
    return all(share_saved(results, "symbol") > share_saved(results, mix) for mix in THRESHOLDS)


CLAIMS = (
    Claim(
        "covering-1",
        "With covering, brokers never send or store more subscriptions, in any mix.",
        "thesis 3.2",
        ShapeRule(
            "forwarded and stored, in sum and at the fullest broker, are at most as many",
            never_more,
        ),
    ),
    Claim(
        "covering-2",
        "Covering changes no delivery and no path of a publication.",
        "thesis 3.2",
        ShapeRule("the same deliveries over as many links", the_same_deliveries),
    ),
    Claim(
        "covering-3",
        "Without covering, a subscription that names its symbol crosses every link on the way to"
        " the publisher.",
        "thesis 3.1",
        ShapeRule(
            "forwarded is the sum of the distances, exactly",
            is_equal("forwarded", "crossings", covering=False, mixes=NAMED),
        ),
    ),
    Claim(
        "covering-4",
        "With covering, only one of several equal filters crosses a link.",
        "thesis 3.2",
        ShapeRule(
            "`symbol`: one for each symbol and link, exactly",
            is_equal("forwarded", "crossings_once", covering=True, mixes=("symbol",)),
        ),
    ),
    Claim(
        "covering-5",
        "A filter that names only the class is sent once over each link, for any number of"
        " subscribers.",
        "thesis 3.2",
        ShapeRule(
            "`class`: one for each link, exactly",
            is_equal("forwarded", "links_told", covering=True, mixes=("class",)),
        ),
    ),
    Claim(
        "covering-6",
        "Of n filters with one threshold in random order, only those that are wider than all before"
        " cross a link: 1 + 1/2 + ... + 1/n.",
        "records, Renyi 1962",
        Agreement(0.10, records_error),
    ),
    Claim(
        "covering-7",
        "Covering saves more with equal filters than with thresholds.",
        "our own",
        ShapeRule(
            "`symbol` saves a larger share than each of the thresholds", equal_filters_save_most
        ),
    ),
    Claim(
        "covering-8",
        "With rated filters, as many cross a link as there are ratings: three, or two.",
        "thesis 7.2.1",
        ShapeRule(
            "`GS2`: at most 3, `GS3`: at most 2 for each symbol and link", rated_filters_at_most
        ),
    ),
    Claim(
        "covering-9",
        "In the mix of the thesis, covering saves at least half of the subscription messages.",
        "our own",
        ShapeRule("`LS3`: the share saved is at least 0.5", lambda r: share_saved(r, "LS3") >= 0.5),
    ),
    Claim(
        "covering-10",
        "With one filter in a hundred that names only the class, covering saves more.",
        "our own",
        ShapeRule(
            "`LS3` saves a larger share than the same without the class filters",
            lambda r: share_saved(r, "LS3") > share_saved(r, "LS3 less class"),
        ),
    ),
)
