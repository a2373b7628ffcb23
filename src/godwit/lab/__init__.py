"""The instrument: experiments, and metrics over traces, on Spark.

experiment.py  what an experiment is; claims.py: what it is to show, and when it has
runner.py      carries it out: workers.py plays, measuring.py measures, cache.py keeps,
               code_version.py knows when to forget, progress.py tells
summary.py     what came of it, as data; tables.py, plots.py, report.py: to look at

java.py      a Java for Spark: the machine's, or one from Python's registry
spark.py     one Spark session, and traces as data frames
stages.py    what a metric is: a function from declared tables to a declared table
numbers.py   results of stages as plain numbers
metrics.py   all stages by name; they are in the modules below
rates.py     how busy brokers were
paths.py     how far and how long publications travelled, and who only passed them on
traffic.py   how many messages of which kind, and how evenly the load was spread
queueing.py  how long messages waited, and how many
profiles.py  which publications each subscriber received, as bits: the planners' input
"""
