"""`grape-weights`: what a weight between load and delay buys.  See placement/.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      G19, G35 to G37 of the thesis
figures.py     measures over the weight
"""

from __future__ import annotations

from godwit.experiments.grape_weights.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
