"""Demonstrations; every delivery is checked.

stocks/       stock quotes through brokers, live or simulated
emergencies/  the emergency scenario of BAD, on Spark
"""
