"""Routing in a tree of brokers, with advertisements and covering (PADRES).

tree_routing.py    the router: advertisements, subscriptions, publications, links
routing_tables.py  its tables
table_views.py     what others may see of them
announcements.py   finds the advertisements that announce a subscription
resync.py          what neighbours exchange when a link comes up or a broker restarts
names.py           which session has which name
presence.py        the direction of brokers whose clients move away
"""
