"""The broker coordination server (BCS): assigns brokers to users, and keeps brokers balanced.

    requests, reports --> Coordinator --> PlanningInput --> decide --> Rounds --> POST /move
    changes asked for --> NetworkChanges --> ChangeRunner --> POST /order, POST /move

server.py               the process: HTTP, clock, state, planning, moves
settings.py             its settings
coordinator_core.py     the coordinator without I/O and clock: requests in, answers and changes out
registry.py             brokers and users; stage 1, the broker for a newcomer
situation.py            the reports, as the arrays that planning uses
deciding.py             a plan for a situation: stages 2 and 3, with hold times
rounds.py               one plan at a time, executed in steps
broker_calls.py         requests to brokers
changes.py              changes of the network: one at a time, as records
change_rules.py         which changes are possible now
change_targets.py       brokers that take the clients of another one
change_requests.py      what operators ask for
change_runner.py        carries changes out, step by step
ordering.py             orders to brokers, and what they say about themselves
broker_steps.py         the steps at one broker: drain, restart, return, leave
newcomers.py            a broker joins, or is started again
stragglers.py           brokers that do not know the epoch in use are told
allocating.py           a plan of the allocator as a change
planned_moves.py        clients move where a plan has them
periodic_decisions.py   what is decided from time to time, without being asked for
autoscale_rule.py       when a plan is carried out without being asked for
autoscaling.py          gathers, plans and applies, if that is switched on
cluster_membership.py   brokers join clusters, and leave them
cluster_rule.py         when another number of clusters is better
cluster_tuning.py       measures that, and changes it, if the network file leaves it open
reshaping_step.py       ... and by epochs, if the tree changes
paced_moves.py          clients are moved at a limited rate
moving_clients.py       asks brokers to move them
broker_records.py       the persistent state, as changes
state.py                the persistent state on the disk
coordinator_metrics.py  metrics for Prometheus

spark_shuffle.py        stage 3 in another process, for very many subscribers
shuffle_job.py          that process
planning_on_spark.py    its Spark job
"""
