"""The log of a dataset: records that were accepted and wait for ingestion.

feed_log.py          the log: append, duplicates, limits, recovery
segments.py          its files: written at the end, all of a write or nothing
log_frames.py        the format of a file: frames with checksums
durable_position.py  up to which position the log may be read
log_source.py        the log as a source of Spark's structured streaming
"""
