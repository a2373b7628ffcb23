"""The dynamic load balancer of subscribers (thesis, chapter 4).

settings.py            the settings
broker_load.py         the load of a broker, measured or estimated
press.py               PRESS: which publications each group of subscribers draws
css.py                 the covering subscription set of many filters
estimates.py           the loads of two brokers after a move
remaining_traffic.py   what each group still draws with the moves so far
report_cards.py        report cards, and the plan of a session
report_pools.py        reports in order, computed again only when they change
input_offload.py       subscriptions of the CSS, until the input utilisations meet
match_offload.py       those with the least traffic, until the matching delays meet
output_offload.py      those that the acceptor covers, then others, until the outputs meet
random_offload.py      the baseline
offload_algorithms.py  the algorithm for an action
load_bounds.py         the least maximum load that any assignment has
"""
