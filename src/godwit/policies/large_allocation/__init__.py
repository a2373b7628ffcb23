"""Allocation for very many subscriptions: what CRAM on Spark computes for groups and at the end.

profile_bytes.py        a profile as bytes: equal bytes, equal traffic
shared_publications.py  publications that similar profiles share: which of them are compared
unit_limits.py          how large a unit may become before the last step
group_clustering.py     the closest units of a group are merged
load_histogram.py       loads of all subscribers, counted, and the bounds that follow
finishing.py            CRAM, tree and publishers from clusters; the plan

lab/large_plans/ runs these on Spark.  Pure: no I/O, no clock.
"""
