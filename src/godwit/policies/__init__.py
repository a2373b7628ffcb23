"""Policies: which broker each client should use, which soft links brokers have.  Pure: no I/O.

placement/  publishers: POP and GRAPE, as modules of a broker
allocation/ both: the fewest brokers that carry all, and the tree above them, as plans
large_allocation/  the same for very many subscriptions: parts of CRAM on Spark
cluster_balancing/  work between brokers of a cluster, as a module of a broker
offload/    subscribers: the dynamic load balancer of the thesis, as a module of a broker
soft_links/ links: which soft links the brokers of a mesh have, as a module of a broker
staged/     subscribers of channels: the stages of BAD Pub/Sub, as plans
"""
