"""Stock quotes through brokers, live or simulated.

stock_scenario.py  the scenario
stocks_demo.py     runs it, shows progress and checks every delivery
"""
