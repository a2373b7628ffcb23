"""`cram-cost`: what making a plan costs.  See allocation/.

experiment.py  the declaration: question, setup, scales, remarks
runs.py        a plan, or the parts of CRAM's first search
measures.py    times, groups of identical filters, closeness evaluations
claims.py      R17 and R34 to R36 of the thesis
figures.py     figure 7.19e of the thesis
"""

from __future__ import annotations

from godwit.experiments.cram_cost.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
