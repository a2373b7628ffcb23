"""What happened in a run, as tables; the same for simulated and live networks.

schema.py      the tables and their columns
rows.py        collects the rows of a table as columns
writer.py      writes columns to Parquet files, in bounded memory
background.py  the thread that writes them
recorder.py    makes rows of what a broker handled; both drivers use it

A trace is a folder with a folder of Parquet files for each table.  The metrics over it are in
lab/metrics/.
"""
