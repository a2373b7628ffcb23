"""What happened in a run, as tables: the one measure of simulated and live networks.

schema.py      the tables and their columns, declared once
rows.py        rows of a table on their way into columns
writer.py      columns into files of Parquet, in bounded memory
background.py  the thread that writes them
recorder.py    from what a broker handled to rows; both drivers use it

A trace is a folder with a folder for each table, and in it files of Parquet, which may be many.
The metrics over it are in lab/.
"""
