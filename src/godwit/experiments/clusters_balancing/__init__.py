"""`clusters-balancing`: what handing load to mates changes if few brokers publish most (CS2).

experiment.py  the declaration: question, setup, scales, remarks
claims.py      C5 to C9, C11
figures.py     figure 3: how many brokers have which load
"""

from __future__ import annotations

from godwit.experiments.clusters_balancing.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
