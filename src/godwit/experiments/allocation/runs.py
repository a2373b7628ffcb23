"""How the allocation experiments are run: gather MANUAL, make a plan, deploy it, play the same.

A case is `{"brokers": 80, "capacity": "equal", "subscriptions": 8000, "algorithm": "cram-iou"}`.
It may have a `vector_length`, a `search` (exact or stop-rule), say whether loads are raised because
vectors are short (`compensated`), and where `publishers` are: as `planned`, at the `root` of the
tree, or where `grape` moves them while the network runs.  `plan` is `best` for a plan beyond the
thesis: with the fewest brokers, and improved by local search.  `quotes` and `usable_per_s` are
described in setups.py.

A seed has the same clients and publications with every algorithm.  The trace is that of the
deployed plan; the plan is in its decisions.  The oracle checks deliveries.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

from godwit.experiments.allocation.deployed import deployed, network_of
from godwit.experiments.allocation.expected_state import expected_of
from godwit.experiments.allocation.initial_state import gathered_of
from godwit.experiments.allocation.measures import measured_span
from godwit.experiments.allocation.plan_notes import report
from godwit.experiments.allocation.setups import setup_of
from godwit.experiments.watched import run_watched
from godwit.lab.declaration import Case
from godwit.policies import placement
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.allocation.plan import AllocationPlan
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings
from godwit.policies.placement.settings import GrapeSettings, Metric
from godwit.simulation.observers import Observer
from godwit.simulation.simulator import Modules, Simulator, no_modules

#: The plan of a case: the thesis's, or the best that we find.
THESIS, BEST = "thesis", "best"
IMPROVE_STEPS = 500


def settings_of(case: Case, seed: int) -> AllocationSettings:
    is_best = case.get("plan") == BEST
    return AllocationSettings(
        algorithm=str(case["algorithm"]),
        seed=seed,
        search=str(case.get("search", "exact")),  # type: ignore[arg-type]
        keep="fewest" if is_best else "last",  # The last one as in the thesis.
        improve_steps=IMPROVE_STEPS if is_best else 0,
        compensate=bool(case.get("compensated", False)),
        relocate_publishers=False if case.get("publishers") == "root" else None,
    )


def modules_of(case: Case) -> Modules:
    """GRAPE, load 100%, in a case with `publishers` = grape; otherwise none."""
    if case.get("publishers") != "grape":
        return no_modules
    samples = setup_of(case).grape_samples
    return placement.modules(
        GrapeSettings(primary=Metric.LOAD, weight_percent=100.0, publications_per_session=samples)
    )


def planned_of(gathered: Gathered, case: Case, seed: int) -> AllocationPlan:
    return make_plan(gathered, settings_of(case, seed), clock=process_time)


def run(case: Case, seed: int, folder: Path) -> None:
    setup = setup_of(case)
    gathered = (gathered_of if setup.is_simulated_before else expected_of)(setup, seed)
    plan = planned_of(gathered, case, seed)
    over = measured_span(case)

    def build(observers: tuple[Observer, ...]) -> Simulator:
        report(plan, gathered, observers[0])
        return deployed(
            network_of(plan),
            setup,
            seed=seed,
            publishing_s=over.end_s - setup.begins_s,
            is_sampled=True,
            observers=observers,
            modules=modules_of(case),
        )

    run_watched(
        build,
        folder,
        until_s=over.end_s,
        gauges_every_s=setup.measured_s,
        deliveries_every=setup.deliveries_every,
        checked_every=setup.checked_every,
    )
