"""How `cram-cost` is run: a plan is made and timed; nothing is deployed.

A case has a `study`: `plan` makes a plan; `search` makes the groups of identical filters (GIFs),
inserts them into CRAM's poset and searches the closest partner of each, as the thesis counted it
(6.2.3), with a `search` rule.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

from godwit.experiments.allocation.expected_state import expected_of
from godwit.experiments.allocation.plan_notes import numbers_of, write_numbers
from godwit.experiments.allocation.runs import planned_of
from godwit.experiments.allocation.setups import setup_of
from godwit.lab.declaration import Case
from godwit.policies.allocation.closeness import ClosenessMetric
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.gathered_reading import read
from godwit.policies.allocation.gif_poset import GifPoset
from godwit.policies.allocation.gif_profiles import GifProfiles
from godwit.policies.allocation.partner_search import PartnerSearch

PLAN, SEARCH = "plan", "search"
STOP_RULE = "stop-rule"


def run(case: Case, seed: int, folder: Path) -> None:
    gathered = expected_of(setup_of(case), seed)
    if case["study"] == PLAN:
        found = numbers_of(planned_of(gathered, case, seed), gathered)
    else:
        found = searched(gathered, is_exact=case["search"] != STOP_RULE)
    write_numbers(found, folder)


def searched(gathered: Gathered, *, is_exact: bool) -> dict[str, float]:
    """The partners of all GIFs with IOU: how many evaluations, and how many partners it misses."""
    problem = read(gathered, compensate=False)
    unlike = {each.profile.key: each.profile for each in problem.subscribers}
    profiles = GifProfiles(problem.table)
    poset = GifPoset(profiles)
    began_s = process_time()
    gifs = [poset.add(profile) for profile in unlike.values()]
    inserted_s = process_time()
    search = PartnerSearch(profiles, poset, ClosenessMetric.IOU, is_exact=is_exact)
    partners = [search.closest(gif, frozenset(), with_itself=False) for gif in gifs]
    searched_s = process_time()
    exact = PartnerSearch(profiles, poset, ClosenessMetric.IOU)
    best = [exact.closest(gif, frozenset(), with_itself=False) for gif in gifs]
    return {
        "subscriptions": len(problem.subscribers),
        "gifs": len(gifs),
        "poset_s": inserted_s - began_s,
        "search_s": searched_s - inserted_s,
        "evaluations": search.evaluations,
        "pairs": len(gifs) * (len(gifs) - 1) / 2,
        "missed": sum(
            (one.closeness if one else 0.0) < (two.closeness if two else 0.0)
            for one, two in zip(partners, best, strict=True)
        ),
    }
