"""Spark on this machine: a Java that it can use, and the one session of a process."""
