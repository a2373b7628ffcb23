"""The data cluster: datasets that feeds fill, and channels over them, on Spark.

A record from its arrival to the results that it leads to:

    feeding.py | server.py POST /records       a publication, or a record over HTTP
      datasets/inbox.py, records.py            checked against the columns
      log/feed_log.py, segments.py             on the disk; only now acknowledged
      log/log_source.py                        read by Spark's structured streaming
      datasets/ingestion.py, writing.py        a micro-batch becomes Parquet files
      datasets/folders.py, files.py            which count when the catalog names them
      channels/scheduler.py                    the batch is due for some channels
      channels/channel_service.py              an execution is planned
      channels/evaluation.py, sql/             one query for all subscriptions, over
      datasets/storage.py                      the new batches and the stored datasets
      channels/result_files.py, executions.py  results are written, the execution is committed
      channels/broker_service.py, results.py   notices and pulls of brokers

model/       datasets, feeds and channels as values; which values fit
ddl/         the statements that create and drop them
sql/         the queries of channels, checked and rewritten
disk.py      syncing to the disk, and the lock of a folder
steady_clock.py  the clock of all times that are compared
catalog.py   one SQLite file: definitions, files, executions
lease.py     which process writes, and a standby that takes its place
log/         records that wait for ingestion
datasets/    ingestion, files and stored datasets
channels/    subscriptions, executions and results
feeding.py   feeds as durable subscribers of the broker network
cluster.py   datasets and channels put together
views.py     datasets and channels as operators see them
settings.py  the settings, from TOML
server.py    the process: HTTP, feeds, Spark
"""
