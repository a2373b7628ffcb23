"""Dynamic load balancing in clusters: brokers hand work to their mates when they are overloaded.

settings.py           threshold, windows, times
message_counts.py     the load of a broker, and which publishers cause it
portions.py           which work is handed to which mate
balancing_letters.py  request, ACCEPT, and what becomes of it
cluster_balancer.py   the module of a broker

How publications keep their order while routes change is the router's business
(overlay/clusters/steered_routing.py).
"""
