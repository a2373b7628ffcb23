"""The papers' workloads as data, each generated from a seed and independent of the driver.

workload.py            what a workload is: publishers, subscribers, timed publications
clients.py             one publisher, one subscriber
timelines.py           joins, leaves, churn and steps of the rate, for a driver to play
workload_figures.py    what a workload really does, measured
stocks.py              the stock market, generated
recorded.py            the stock market, recorded
stock_quotes.py        what a quote is
stock_templates.py     templates of subscriptions to quotes
stock_publishers.py    publishers of one stock each
quotes.py              reads a file of quotes; does I/O
balancing.py           LS: load balancing
placement.py           GS: publisher placement
allocation.py          RS: resource allocation
zipf.py                DT1 to DT5: Publiy's datasets with Zipf popularity
social.py              DT-FB: Publiy's social graph
matching_ratio.py      CS: cluster-based overlays, fixed matching ratios
emergencies.py         BS1: reports, subscribers and their locations
emergency_channels.py  BS1: datasets and channels
roads.py               BS1: a road map, and walkers on it
road_files.py          reads a road map; does I/O
audience.py            BS3: subscribers of channels, by the ten thousand

Randomness comes only through an argument: a `Random`, or NumPy's generator for audience.py.
"""
