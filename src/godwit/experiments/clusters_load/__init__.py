"""`clusters-load`: how evenly clusters, a tree and a hash table divide the load (CS1).

experiment.py  the declaration: question, setup, scales, remarks
claims.py      C3, C4, C10, C11
figures.py     figure 2: the loads of the brokers, the busiest first
"""

from __future__ import annotations

from godwit.experiments.clusters_load.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
