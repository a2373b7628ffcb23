"""Spark on this machine.

session.py         the one Spark session of a process
java.py            a Java that Spark can use
log4j2.properties  the log of Spark's Java side: errors only
"""
