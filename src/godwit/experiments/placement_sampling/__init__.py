"""`placement-sampling`: how many publications to trace before deciding.  See placement/.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      G15, G38 to G40 of the thesis
figures.py     measures over the threshold
"""

from __future__ import annotations

from godwit.experiments.placement_sampling.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
