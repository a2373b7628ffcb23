"""Policies: which broker each client should use.  Pure: no I/O, no clock.

placement/  publishers: POP and GRAPE, as modules of a broker
allocation/ both: the fewest brokers that carry all, and the tree above them, as plans
offload/    subscribers: the dynamic load balancer of the thesis, as a module of a broker
staged/     subscribers of channels: the stages of BAD Pub/Sub, as plans
"""
