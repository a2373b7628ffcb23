"""`mesh-congestion`: 21 brokers with slow uplinks.

experiment.py  the declaration: question, setup, scales
claims.py      what is delivered by each strategy
figures.py     figure 13 (c) of the paper
"""

from __future__ import annotations

from godwit.experiments.mesh_congestion.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
