"""`press-accuracy`: how good the estimates of PRESS and of the offload algorithms are.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      what the thesis says of them
figures.py     figure 7.9 of the thesis, and errors over the number of samples
"""

from __future__ import annotations

from godwit.experiments.press_accuracy.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
