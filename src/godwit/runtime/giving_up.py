"""What is lost when a link is given up: is a part of the network missing then?"""

from __future__ import annotations

import logging

from godwit.broker.routing import Routing, structure_of
from godwit.broker.stimuli import LinkKind, Loss, Neighbour
from godwit.runtime.port import LinkPort

log = logging.getLogger("godwit.links")

#: How the reason begins if the neighbour has taken leave, as all brokers do when a network stops.
SAID_GOODBYE = "said goodbye"


def loss_of(port: LinkPort, routing: Routing, reason: str, *, for_good: bool) -> Loss | None:
    """None if nothing is missing: a broker that was drained has left `for_good`.

    Nor is anything if a soft link is gone: what it did not deliver takes another way.
    """
    structure = structure_of(routing)
    if port.kind is LinkKind.SOFT:
        return None
    if for_good and structure is not None and structure.is_leaving(port.hop.name):
        return None
    dropped = port.dropped()
    is_spare = for_good and not _is_relied_on(port.hop, routing)
    if is_spare and not dropped:
        return None
    extra = {"neighbour": port.hop.name, "reason": reason, "dropped": dropped.total()}
    is_usual = reason.startswith(SAID_GOODBYE) and not dropped
    log.log(
        logging.INFO if is_usual else logging.WARNING,
        "a part of the network is missing",
        extra=extra,
    )
    return Loss(port.heard_s, reason, dict(dropped))


def _is_relied_on(neighbour: Neighbour, routing: Routing) -> bool:
    """Do clients in this direction hold anything?  Policy modules do not count."""
    tables = routing.tables()
    held = (*tables.advertisements.items(), *tables.subscriptions.items())
    return any(hop == neighbour and not id.startswith("$") for id, hop in held)
