"""`balance-global`: load balancing between clusters.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      what the thesis says of it
figures.py     figure 7.10 of the thesis
"""

from __future__ import annotations

from godwit.experiments.balance_global.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
