"""`press-accuracy`: how well PRESS estimates loads, with how many samples, and at what cost.

experiment.py  the declaration: question, setup, scales, remarks
runs.py        balancing, or the memory and time of one decision
measures.py    errors of estimates, memory, time
claims.py      what the thesis says of estimates
figures.py     figure 7.9 of the thesis, and errors over the number of samples
"""

from __future__ import annotations

from godwit.experiments.press_accuracy.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
