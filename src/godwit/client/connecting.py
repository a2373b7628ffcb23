"""How an application gets a client: `godwit.connect`."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.client.broker_connection import FALL_BACK_S, BrokerFinder, new_incarnation
from godwit.client.client import CONNECT_S, Client, random_name
from godwit.protocol.addresses import separate
from godwit.protocol.call import url_opener


def connect(
    *urls: str | Sequence[str],
    name: str | None = None,
    take_over: bool = False,
    location: tuple[float, float] | None = None,
    connect_s: float = CONNECT_S,
    fall_back_s: float = FALL_BACK_S,
) -> Client:
    """A client of the broker at `godwit://HOST:PORT`, connected when it is entered.

    Several addresses, as arguments, as a list or as a text with commas, are tried in order.  A
    broker that refuses, or does not answer, is followed by the next one: at first at once, later
    when it has refused, or has not answered for `fall_back_s`, as the session may be resumed there.

    `name` belongs to one session in the whole network; without one, a random name is used.  While
    another client of this name is connected anywhere, this one is refused; with `take_over` it ends
    the other one, whose application gets a TakenOverError.  A client that has crashed or was closed
    does not hold its name.

    A client that has moved and cannot reach its broker for `fall_back_s` also tries the brokers
    where it was before.

    `bcs+http://HOST:PORT` is the address of a coordinator.  It is asked for a broker when the
    client connects, and again if that broker cannot be reached for `fall_back_s`.  It may take the
    `location` into account: latitude and longitude.
    """
    incarnation = new_incarnation() if name else ""
    name = name or random_name()
    homes: list[str | BrokerFinder] = []
    for url in separate(urls):
        if url.startswith("bcs+"):
            from godwit.client.coordinated import finder  # noqa: PLC0415  Needs HTTP; few do.

            homes.append(finder(url, name, location, url_opener))
        else:
            homes.append(url)
    return Client(
        *homes,
        resolve=url_opener,
        name=name,
        incarnation=incarnation,
        take_over=take_over,
        connect_s=connect_s,
        fall_back_s=fall_back_s,
    )
