"""`clusters-optimum`: traffic over the number of clusters, beside the formula (C1, C2).

experiment.py  the declaration: question, setup, scales, remarks
claims.py      C1 and C2
figures.py     measured traffic and equation (1)
"""

from __future__ import annotations

from godwit.experiments.clusters_optimum.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
