"""`allocation-homogeneous`: how few of 80 equal brokers will do.  See allocation/.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      R1 to R16, R29 and R30 of the thesis, for equal brokers
"""

from __future__ import annotations

from godwit.experiments.allocation_homogeneous.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
