"""`static-tree`: the tree without any policy, the baseline for others.

experiment.py  the declaration: question, setup, scales, remarks
runs.py        how a case is run: simulated, or through broker processes
measures.py    load, hops and delays
claims.py      what one expects of the baseline
figures.py     measures over X; live delays beside simulated ones
"""

from __future__ import annotations

from godwit.experiments.static_tree.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
