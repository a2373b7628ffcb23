"""`balance-clusters`: chains with more and more clusters.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      what the thesis says of them
"""

from __future__ import annotations

from godwit.experiments.balance_clusters.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
