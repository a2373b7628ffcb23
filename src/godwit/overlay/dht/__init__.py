"""Routing over a distributed hash table, a baseline: brokers own zones of the content space.

content_space.py  where a publication is in the space, and which part of it a filter meets
zones.py          which broker owns which zone, and the way from zone to zone
zone_joining.py   how zones come about: each broker joins at the busiest one
dht_routing.py    the router: subscriptions to owners, publications to one owner, then home
"""
