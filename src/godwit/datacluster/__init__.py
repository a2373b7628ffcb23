"""The data cluster: datasets that feeds fill, and channels over them, on Spark.

From feed to broker:

    log --> ingestion --> dataset --> channel execution --> results
"""
