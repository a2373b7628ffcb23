"""`cram-vectors`: how long bit vectors must be.  See allocation/.

experiment.py  the declaration: question, setup, scales, remarks
claims.py      R31 to R33 of the thesis
figures.py     figure 7.23 of the thesis
"""

from __future__ import annotations

from godwit.experiments.cram_vectors.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
