"""Routing in clusters and rings of brokers (cluster-based publish/subscribe).

cluster_structure.py   which broker is in which cluster and ring, from n and m
cluster_traffic.py     what a number of clusters costs, and the number that costs least
cluster_routing.py     the router: ring phase, cluster phase, links
subscription_lists.py  LocalSubscriptionList and ClusterSubscriptionList
steered_routing.py     the same router, whose brokers do a part of each other's work
routes.py              ... the routes of publishers, and how they change
flushing.py            ... how a broker learns that what it has sent has arrived
settling.py            how a broker learns that all that was published before has arrived
cluster_resync.py      what brokers exchange when a link comes up or a broker restarts
"""
