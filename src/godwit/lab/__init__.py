"""Runs experiments, measures their traces on Spark, judges their claims, and reports.

declaration.py   what an experiment is: cases, seeds, run, measure, claims, figures
rules.py         what a claim is, and the rules that decide it
runner.py        runs an experiment: plays what is not in the cache, and measures it
workers.py       plays runs in several processes
measuring.py     turns traces into numbers, in threads with one Spark session
cache.py         stores the numbers of complete runs
code_version.py  the version of the code behind a run; earlier runs of other code are void
progress.py      shows how far a computation is
summary.py       numbers over seeds and verdicts, as data
text_tables.py   a summary as tables, for the terminal and for pages
curves.py        something over time, as measures for figures
plots.py         figures for pages
report.py        a page for each experiment, and the score of all
trace_profiles.py  profiles of subscribers and brokers from a trace, for CROC
metrics/         metrics over the tables of a trace

Read declaration.py first.  The experiments are in experiments/.
"""
