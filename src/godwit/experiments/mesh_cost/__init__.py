"""`mesh-cost`: what more links cost a broker, in covering sets, predicate evaluations and time.

experiment.py  the declaration: question, setup, scales, remarks
runs.py        how a case is run, and what is read from the brokers at its end
measures.py    means over brokers
claims.py      fragmentation of covering sets, times of updates and decisions
figures.py     figure 12 of the paper
"""

from __future__ import annotations

from godwit.experiments.mesh_cost.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
