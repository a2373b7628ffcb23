"""Datasets, feeds and channels as values, and which values their columns take.

dataset.py        a dataset: named columns of some types, perhaps a key
feed.py           a feed: a filter, and the dataset that it fills
channel.py        a channel: a query with parameters, and how often it is executed
schemas.py        columns as Arrow's and Spark's schemas, with the columns that Godwit adds
column_values.py  which values fit which type, for records and for arguments alike
"""
