"""`offload-cost`: the memory of PRESS, and the time of a decision.

experiment.py  the declaration: question, setup, scales
runs.py        one decision by itself
measures.py    its memory or time
claims.py      what the thesis says of them
figures.py     the time over the number of subscriptions
"""

from __future__ import annotations

from godwit.experiments.offload_cost.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
