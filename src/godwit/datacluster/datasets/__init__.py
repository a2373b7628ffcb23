"""Datasets: from the record that arrives to the files that channels read.

    inbox --> records --> (log/) --> ingestion --> writing --> folders, files --> storage

inbox.py            accepts records: into the log of the dataset, or of its quarantine
records.py          records against the columns of a dataset
ingestion.py        a streaming query for each dataset, from its log to its files
writing.py          a data frame becomes Parquet files
folders.py          where files are, and how they get there
files.py            which files count, and how far ingestion has come: rows of the catalog
storage.py          stored datasets as data frames, for channels
definitions.py      which datasets and feeds exist: rows of the catalog
loading.py          a file becomes the content of a static dataset
housekeeping.py     a thread for the next two, and for the deletion of files
compaction.py       many small files become few large ones
retention.py        which files are too old, or too many
readers.py          who reads files at the moment, so that none of them is deleted
dataset_service.py  all of it behind one door: statements, inboxes, loads
"""
