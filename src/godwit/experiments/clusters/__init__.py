"""What the next three experiments share: cluster-based publish/subscribe and its baselines.

overlay_setups.py  the overlay of a case: tree, clusters, distributed hash table
runs.py            how a case is run: a fixed matching ratio, publications from every broker
measures.py        loads of brokers, their distribution, hops, deliveries
"""
