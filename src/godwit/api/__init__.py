"""The contracts of our HTTP servers: operations with their request and answer types.

broker_api.py       a broker: channels over HTTP, moves of clients
balancing_api.py    a broker: its load balancer, for operators
gathering_api.py    a broker: profiles of the whole network, for CROC
routing_api.py      a broker: its tables with filters, and where a publication would go
network_api.py      broker and coordinator: a network that is changed while it runs
plan_requests.py    a plan of the allocator, as a change of the network
network_views.py    what brokers say about themselves, put together
dashboard_api.py    the dashboard: overview, actions, filters, stories of publications
epoch_api.py        a broker: its part in a change of the network's shape
coordinator_api.py  the coordinator: registration, load reports, plans and moves
datacluster_api.py  the data cluster: subscriptions and results, records, definitions
"""
