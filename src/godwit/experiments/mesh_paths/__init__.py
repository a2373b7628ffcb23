"""`mesh-paths`: how many paths a mesh has, and how much shorter its publications travel.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      paths between brokers, path lengths, delay
figures.py     figures 1, 9 and 10 of the paper
"""

from __future__ import annotations

from godwit.experiments.mesh_paths.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
