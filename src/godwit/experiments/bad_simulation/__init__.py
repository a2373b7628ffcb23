"""`bad-simulation`: staged load balancing in virtual time.

experiment.py  the declaration: question, setup, scales, remarks
runs.py        how a case is run: channels execute, a coordinator plans every 10 s
measures.py    loads, their imbalance, moves
claims.py      what the BAD paper says of its simulation
figures.py     figures 13 and 14 of the paper
"""

from __future__ import annotations

from godwit.experiments.bad_simulation.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
