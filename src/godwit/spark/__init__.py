"""Spark on this machine.

session.py         the one Spark session of a process
supervised.py      that session, started again when its Java process has died
memory.py          how much memory Spark gets on this machine
java.py            a Java that Spark can use
log4j2.properties  the log of Spark's Java side: errors only
"""
