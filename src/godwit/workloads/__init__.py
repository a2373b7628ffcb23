"""The workloads of the papers as data: from a seed, tied to no driver.

workload.py, clients.py     what a workload is: publishers, subscribers, timed publications
timelines.py                joins, leaves, churn and steps of the rate, for a driver to play
measures.py                 what a workload really does
stocks.py, recorded.py      the stock market, generated and recorded; with it stock_quotes.py (what
                            a quote is), stock_templates.py (who wants it), stock_publishers.py
quotes.py, road_files.py    read a file of quotes, of roads: the only modules here that do I/O
balancing.py                LS: load balancing.  placement.py: GS.  allocation.py: RS
zipf.py, social.py          DT: Publiy's datasets.  matching_ratio.py: CS, cluster-based
emergencies.py              BS1: people on roads.py, reports, who asks emergency_channels.py what
audience.py                 BS3: subscribers of channels, by the ten thousand

Randomness comes only through an argument: a `Random`, or NumPy's generator for audience.py.  The
same seed gives the same workload.
"""
