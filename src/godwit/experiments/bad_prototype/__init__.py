"""`bad-prototype`: staged load balancing of the emergency scenario, simulated and live.

experiment.py         the declaration: question, setup, scales, remarks
runs.py               how a case is run: in virtual time, or with real processes
virtual_rounds.py     the scenario in virtual time, with the real coordinator
emergency_results.py  the bytes that each channel finds, without Spark
run_notes.py          what is written into the trace
measures.py           loads, their imbalance, moves
claims.py             what the BAD paper says of its prototype
figures.py            figures 5 to 12 of the paper; live beside simulated
"""

from __future__ import annotations

from godwit.experiments.bad_prototype.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
