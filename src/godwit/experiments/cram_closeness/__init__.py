"""`cram-closeness`: CRAM with INTERSECT, XOR, IOS and IOU.  See allocation/.

experiment.py  the declaration: question, setup, scales, remarks
runs.py        a deployed plan, or the clusters of a plan
measures.py    those of allocation/, and clusters of disjoint subscriptions
claims.py      R24 to R28 and R37 of the thesis
figures.py     figure 7.21 of the thesis
"""

from __future__ import annotations

from godwit.experiments.cram_closeness.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
