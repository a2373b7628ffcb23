"""The experiments, by name.  Each of these modules declares one, `EXPERIMENT`; lab/ carries it out.

static_tree.py    the tree that everything else is compared with; how it is run: static_tree_runs.py
broker_model.py   one broker against queueing theory
covering.py       what covering saves
grape_enterprise.py, grape_random.py, grape_weights.py, placement_sampling.py
                  POP and GRAPE; how they are run: relocating.py
bad_simulation.py staged load balancing; how it is run: balancing_rounds.py
bad_prototype.py  ... of the emergency scenario; how it is run: prototype_runs.py
watched.py        a simulation with a trace and the oracle: how most experiments run theirs
"""

from __future__ import annotations

from collections.abc import Mapping

from godwit.experiments import (
    bad_prototype,
    bad_simulation,
    broker_model,
    covering,
    grape_enterprise,
    grape_random,
    grape_weights,
    placement_sampling,
    static_tree,
)
from godwit.lab.experiment import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        static_tree,
        broker_model,
        covering,
        grape_enterprise,
        grape_random,
        grape_weights,
        placement_sampling,
        bad_simulation,
        bad_prototype,
    )
}
