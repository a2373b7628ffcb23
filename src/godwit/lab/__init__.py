"""The instrument: metrics over traces, on Spark.

java.py      a Java for Spark: the machine's, or one from Python's registry
spark.py     one Spark session, and traces as data frames
stages.py    what a metric is: a function from declared tables to a declared table
rates.py     how busy brokers were
paths.py     how far and how long publications travelled, and who only passed them on
traffic.py   how many messages of which kind, and how evenly the load was spread
profiles.py  which publications each subscriber received, as bits: the planners' input
"""
