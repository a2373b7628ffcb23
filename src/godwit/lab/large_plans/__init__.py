"""CRAM on Spark: plans for 100,000 to 1,000,000 subscriptions.

    with planned_on_spark(frame, table, brokers, AllocationSettings()) as made:
        made.plan, made.assigned

large_plan.py      from subscribers on Spark to a plan
gif_frames.py      GIFs by hash, split into units, and their loads
cluster_rounds.py  units with common publications are merged, in rounds
profile_frames.py  subscribers on Spark: from a document, or from a trace

policies/large_allocation/ has what is computed for each group, and at the end.
"""
