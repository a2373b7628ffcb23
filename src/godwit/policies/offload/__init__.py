"""The dynamic load balancer of subscribers (thesis, chapter 4).

broker_load.py  the load of a broker, measured or estimated
settings.py     the settings
"""
