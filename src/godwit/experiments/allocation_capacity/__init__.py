"""`allocation-capacity`: which capacity of brokers explains which claim?  See allocation/.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      R2, R3, R24 and R30 of the thesis, over capacities
figures.py     brokers over capacity
"""

from __future__ import annotations

from godwit.experiments.allocation_capacity.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
