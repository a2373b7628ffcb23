"""`allocation-steps`: what clustering, a new tree and moved publishers contribute.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      R18 to R23 of the thesis, and what compares equal with unequal brokers
figures.py     figure 7.20 of the thesis
"""

from __future__ import annotations

from godwit.experiments.allocation_steps.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
