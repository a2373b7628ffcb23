"""The data cluster: datasets that feeds fill, and channels over them, on Spark.

feed --> log --> ingestion --> dataset --> channel execution --> results --> brokers
"""
