"""`broker-model`: one broker against queueing theory.

experiment.py       the declaration: question, setup, scales, remarks
runs.py             how a case is run: one broker under a load
measures.py         waits, queues, utilisation; Lindley's recursion
claims.py           what theory predicts, and the error that is allowed
figures.py          theory as curves, runs as marks
queueing_theory.py  the formulae
"""

from __future__ import annotations

from godwit.experiments.broker_model.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
