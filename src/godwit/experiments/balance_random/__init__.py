"""`balance-random`: the thesis's baseline, which picks subscribers at random.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      what the thesis says of it
figures.py     figures 7.4, 7.5d and 7.6 of the thesis
"""

from __future__ import annotations

from godwit.experiments.balance_random.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
