"""Channels: definitions, subscriptions, executions and results.

channel_service.py      definitions and executions: plan, evaluate, write, commit
scheduler.py            when channels are executed
broker_service.py       the requests of brokers: subscribe, notices, pull
channel_tables.py       the tables of this package in the catalog
channel_definitions.py  channels in the catalog
arguments.py            arguments of a subscription, checked and in canonical form
subscriptions.py        BE subscriptions in the catalog, and which brokers hold them
subscription_table.py   the subscriptions of a channel in Spark
snapshots.py            stored datasets as channels read them: an interface
evaluation.py           a channel's query on Spark, one job for all subscriptions
executions.py           executions in the catalog: inputs, state, outcome
result_files.py         results on disk, Parquet for each execution
result_writing.py       writes them: small ones here, large ones by Spark's tasks
result_rows.py          rows of these files as brokers receive them
results.py              notices, pulls, and how long results are kept
"""
