"""`grape-enterprise`: a few subscribers want everything and sit together.  See placement/.

experiment.py   the declaration: question, setup, scales, remarks
claims.py       G1 to G14 of the thesis: load and delay
move_claims.py  G17, G21, G23 to G26: decisions and moves
"""

from __future__ import annotations

from godwit.experiments.grape_enterprise.experiment import EXPERIMENT

__all__ = ["EXPERIMENT"]
