"""The tables of a trace.  Times are seconds: since the start of a simulation, or since 1970.

HANDLED     a row for each message that a broker handled
DELIVERED   a row for each publication that a client received; of a live broker, for each that was
            put into the queue of the client
GAUGES      a row for each broker every few seconds
DECISIONS   a row for each decision of a policy, and for each move
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

TEXT, NUMBER, COUNT = pa.string(), pa.float64(), pa.int64()
SMALL_COUNT, YES_OR_NO = pa.int32(), pa.bool_()

HANDLED = pa.schema(
    {
        "time_s": NUMBER,  # when matching was finished
        "broker": TEXT,
        "kind": TEXT,  # Publication, Subscription, ...
        "class": TEXT,  # of a publication, else null
        "publisher": TEXT,  # of a publication; with the sequence number its id, in one incarnation
        "sequence": COUNT,
        "owner": TEXT,  # whose advertisement, subscription or sweep it is: a client or module
        "came_from": TEXT,  # a broker, a client or a module
        "from_broker": YES_OR_NO,
        "went_to": TEXT,  # the neighbours that it was forwarded to, separated by spaces
        "copies": SMALL_COUNT,  # messages to them; each has a row at its receiver
        "local_matches": SMALL_COUNT,  # clients of this broker that received a copy
        "messages_out": SMALL_COUNT,  # all outputs: copies, answers, routing messages
        "hops": SMALL_COUNT,
        "queue_delay_s": NUMBER,
        "matching_delay_s": NUMBER,
        "size_bytes": COUNT,
        "is_control": YES_OR_NO,
    }
)

DELIVERED = pa.schema(
    {
        "time_s": NUMBER,
        "client": TEXT,
        "publisher": TEXT,
        "sequence": COUNT,
        "advertisement": TEXT,
        "class": TEXT,
        "hops": SMALL_COUNT,
        "delay_s": NUMBER,  # since the publisher's broker accepted it
        "size_bytes": COUNT,
    }
)

GAUGES = pa.schema(
    {
        "time_s": NUMBER,
        "broker": TEXT,
        "input_utilisation": NUMBER,
        "output_utilisation": NUMBER,
        "matching_delay_s": NUMBER,
        "publications_per_s": NUMBER,
        "messages_in_per_s": NUMBER,
        "messages_out_per_s": NUMBER,
        "bytes_in_per_s": NUMBER,
        "bytes_out_per_s": NUMBER,
        "messages_queued": COUNT,
        "bytes_queued": COUNT,
        "memory_bytes": COUNT,  # resident memory of a live broker; simulated: engine and queues
        "subscriptions": COUNT,
        "advertisements": COUNT,
        "clients": COUNT,
    }
)

DECISIONS = pa.schema(
    {
        "time_s": NUMBER,
        "broker": TEXT,
        "policy": TEXT,
        "action": TEXT,  # proposed, moved, refused, ...
        "subject": TEXT,  # the client that is, or would be, moved
        "source": TEXT,
        "target": TEXT,
        "reason": TEXT,  # the numbers behind the decision, as JSON
    }
)

TABLES: Mapping[str, pa.Schema] = {
    "handled": HANDLED,
    "delivered": DELIVERED,
    "gauges": GAUGES,
    "decisions": DECISIONS,
}
