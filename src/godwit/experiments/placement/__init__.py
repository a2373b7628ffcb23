"""What the experiments about publisher placement (POP and GRAPE) share.

placement_setup.py  setup GS1 of the thesis, in words and as cases
runs.py             how a case is run: a tree, a workload, a policy
measures.py         load, delay, and moves of publishers
claims.py           terms of which claims are made: a policy beside the static tree, over all X
figures.py          measures over X, a line for each policy
"""
