"""The broker coordination server (BCS): assigns brokers to users, and keeps brokers balanced.

    requests, reports --> Coordinator --> PlanningInput --> decide --> Rounds --> POST /move

server.py               the process: HTTP, clock, state, planning, moves
settings.py             its settings
coordinator_core.py     the coordinator without I/O and clock: requests in, answers and changes out
registry.py             brokers and users; stage 1, the broker for a newcomer
situation.py            the reports, as the arrays that planning uses
deciding.py             a plan for a situation: stages 2 and 3, with hold times
rounds.py               one plan at a time, executed in steps
move_executor.py        requests to brokers to move their clients
broker_records.py       the persistent state, as changes
state.py                the persistent state on the disk
coordinator_metrics.py  metrics for Prometheus

spark_shuffle.py        stage 3 in another process, for very many subscribers
shuffle_job.py          that process
planning_on_spark.py    its Spark job
"""
