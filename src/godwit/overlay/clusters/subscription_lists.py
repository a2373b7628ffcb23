"""The two lists of subscriptions of a broker in a cluster.

Paper    Cluster-based pub/sub (document 003), section 2.1.

LocalSubscriptionList     of the clients of this broker; what of it the mates have
ClusterSubscriptionList   what the mates have sent: (subscription, subscriber broker)

    client --> s   covered by another one of this broker: it is only added here
                   else: it is sent to all mates, and in effect when all have confirmed
    s goes         those that it covered are sent to the mates first, then the removal of s

Departs  1. The paper does not say when a subscription is in effect, nor how one is withdrawn.
         2. A subscription that was sent stays with the mates when a wider one follows, as in a tree
            (departure 4 of tree/tree_routing.py).  The paper removes it, and would have to send it
            again when the wider one goes.  The index of a mate holds the wider one only, so that it
            costs memory and no time.

L1  The mates have the fronts of what may travel, nothing else: what is behind a front is covered.
L2  A front awaits the mates that have not confirmed it, linked or expected ones.
L3  A subscription that is not in effect waits for its front, and that one awaits a mate.
L4  What is withheld from a mate are fronts; it gets them before it matches again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from godwit.broker.effects import Send
from godwit.broker.stimuli import Hop, Neighbour
from godwit.content.covering import CoveringSet
from godwit.content.filters import Filter
from godwit.content.messages import (
    Publication,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Unsubscription,
)
from godwit.overlay.tree.routing_tables import InterestTable, SubscriptionEntry


class LocalSubscriptionList:
    def __init__(self, linked: Iterable[Neighbour], expected: Iterable[Neighbour]) -> None:
        """The mates: those that are linked, and those whose links have not been up."""
        self.completed: list[SubscriptionEntry] = []
        """All mates have these now, for the caller to take."""
        self._linked = dict.fromkeys(linked)
        self._mates = {*self._linked, *expected}
        self._table = InterestTable()
        self._fronts: dict[bool, CoveringSet[SubscriptionId]] = {
            False: CoveringSet(),
            True: CoveringSet(),
        }
        """What may travel; control and normal interests apart."""
        self._awaited: dict[SubscriptionId, set[Neighbour]] = {}
        """Fronts, and the mates that have not confirmed them (L2)."""
        self._waiting: dict[SubscriptionId, dict[SubscriptionId, None]] = {}
        """Fronts, and the subscriptions that are in effect when the mates have these (L3)."""
        self._withheld: dict[Neighbour, dict[SubscriptionId, None]] = {}
        """Mates that match nothing, and the fronts that were not sent to them (L4)."""
        self.fronts_sent = 0
        """Subscriptions that all mates were sent, so far."""

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[SubscriptionEntry]:
        return iter(self._table)

    def get(self, id: SubscriptionId) -> SubscriptionEntry | None:
        return self._table.get(id)

    def hops_wanting(self, publication: Publication) -> dict[Hop, None]:
        """The clients and modules with a matching subscription."""
        return self._table.hops_wanting(publication)

    # -- subscriptions of clients --------------------------------------------------------------

    def add(self, subscription: Subscription, hop: Hop) -> list[Send]:
        entry = self._table.add(subscription, hop)
        if subscription.local_only:
            self.completed.append(entry)
            return []
        front = self._fronts[entry.is_control].add(subscription.id, subscription.filter)
        sends = self._send(entry) if front is None else []
        self._wait(entry)
        return sends

    def remove(self, entry: SubscriptionEntry) -> list[Send]:
        """Withdraw a subscription; those that it covered are sent first: no gap in delivery."""
        id, fronts = entry.subscription.id, self._fronts[entry.is_control]
        entry.in_effect = True  # The subscriber no longer waits for it.
        self._table.remove(entry)
        if id not in fronts:
            return []
        front = fronts.front_of(id)
        if front is not None:
            fronts.remove(id)
            self._waiting.get(front, {}).pop(id, None)
            return []
        sends: list[Send] = []
        for stepped in fronts.remove(id):
            sends += self._send(self._table[stepped])
        for mate in self._linked:
            if id in self._withheld.get(mate, ()):
                del self._withheld[mate][id]
            else:
                sends.append(Send(mate, Unsubscription(id=id)))
        self._awaited.pop(id, None)
        for waiting in self._waiting.pop(id, {}):
            if waiting != id:
                self._wait(self._table[waiting])
        return sends

    def _send(self, entry: SubscriptionEntry) -> list[Send]:
        """Send a front to all mates."""
        self.fronts_sent += 1
        id = entry.subscription.id
        for withheld in self._withheld.values():
            withheld[id] = None
        if awaited := self._mates - self._withheld.keys():
            self._awaited[id] = awaited
        return [Send(mate, entry.subscription) for mate in self._linked if mate in awaited]

    def _wait(self, entry: SubscriptionEntry) -> None:
        id = entry.subscription.id
        front = self._fronts[entry.is_control].front_of(id) or id
        if front in self._awaited:
            self._waiting.setdefault(front, {})[id] = None
        else:
            self.completed.append(entry)

    # -- mates ---------------------------------------------------------------------------------

    def confirmed(self, notice: SubscriptionInEffect, mate: Neighbour) -> None:
        """A mate has a subscription that was sent to it."""
        entry = self._table.get(notice.id)
        # Else it was withdrawn meanwhile, and its id may be in use again.
        if entry is not None and entry.subscription.edition == notice.edition:
            self._await_no_longer(notice.id, mate)

    def _await_no_longer(self, front: SubscriptionId, mate: Neighbour) -> None:
        awaited = self._awaited.get(front)
        if awaited is None:
            return
        awaited.discard(mate)
        if not awaited:
            del self._awaited[front]
            self.completed += [self._table[id] for id in self._waiting.pop(front, {})]

    def withhold(self, mate: Neighbour) -> None:
        """A mate matches nothing: send it no new subscriptions until it wants them again."""
        self._withheld.setdefault(mate, {})

    def resend(self, mate: Neighbour) -> list[Send]:
        """A mate takes subscriptions again: send it those that it lacks."""
        withheld = self._withheld.pop(mate, {})
        return [Send(mate, self._table[id].subscription) for id in withheld]

    def link_up(self, mate: Neighbour) -> list[Send]:
        """A new mate: send it what the others have, and wait for it."""
        self._linked[mate] = None
        self._mates.add(mate)
        for front in self._sent():
            self._awaited.setdefault(front.subscription.id, set()).add(mate)
        return self.repeat(mate)

    def repeat(self, mate: Neighbour) -> list[Send]:
        """Send a mate all that it has to have: a mate that restarts matches again."""
        self._withheld.pop(mate, None)
        return [Send(mate, front.subscription) for front in self._sent()]

    def link_down(self, mate: Neighbour) -> None:
        """Do not wait for a mate any longer."""
        self._linked.pop(mate, None)
        self._mates.discard(mate)
        self._withheld.pop(mate, None)
        for front in list(self._awaited):
            self._await_no_longer(front, mate)

    def _sent(self) -> Iterator[SubscriptionEntry]:
        for entry in self._table:
            fronts, id = self._fronts[entry.is_control], entry.subscription.id
            if id in fronts and fronts.front_of(id) is None:
                yield entry

    def sent(self) -> list[SubscriptionId]:
        """What the mates were sent."""
        return [entry.subscription.id for entry in self._sent()]

    def check(self) -> None:
        """Assert L1 to L3."""
        self._table.check()
        fronts = set(self.sent())
        for front, awaited in self._awaited.items():
            assert front in fronts, f"L2: {front} awaits a mate but was not sent"
            assert awaited, f"L2: {front} awaits no mate"
            assert awaited <= self._mates, f"L2: {front} awaits one that is not a mate"
        for mate, withheld in self._withheld.items():
            assert fronts >= withheld.keys(), f"L4: withheld from {mate.name}: no fronts"
        waiting = {id: front for front, ids in self._waiting.items() for id in ids}
        completed = {entry.subscription.id for entry in self.completed}
        assert not completed, f"{completed} were not taken"
        for entry in self._table:
            id, of_kind = entry.subscription.id, self._fronts[entry.is_control]
            assert (id in of_kind) != entry.subscription.local_only, f"L1: {id}"
            if id in waiting:
                assert waiting[id] == (of_kind.front_of(id) or id), f"L3: {id} waits elsewhere"
                assert waiting[id] in self._awaited, f"L3: {id} waits for nothing"
        for each in self._fronts.values():
            each.check()


class ClusterSubscriptionList:
    """Subscriptions of the mates, each with its broker.

    Two mates may have sent the same id: its client has connected to another broker, and the first
    one has not given up its session yet.  So the broker is a part of the key.
    """

    def __init__(self) -> None:
        self._table = InterestTable()

    def __len__(self) -> int:
        return len(self._table)

    def brokers_wanting(self, publication: Publication) -> dict[Hop, None]:
        """The mates with a matching subscription."""
        return self._table.hops_wanting(publication)

    def add(self, subscription: Subscription, mate: Neighbour) -> None:
        key = _key(subscription.id, mate)
        known = self._table.get(key)
        if known is not None and known.subscription.edition == subscription.edition:
            known.is_in_doubt = False  # A repetition.
            return
        if known is not None:  # The mate has restarted, and its client uses the id again.
            self._table.remove(known)
        self._table.add(replace(subscription, id=key), mate)

    def remove(self, id: SubscriptionId, mate: Neighbour) -> None:
        entry = self._table.get(_key(id, mate))
        if entry is not None:
            self._table.remove(entry)

    def doubt(self, mate: Neighbour) -> None:
        """The mate has restarted: keep what it sent until it has repeated all."""
        for entry in self._table:
            entry.is_in_doubt |= entry.last_hop == mate

    def remove_all(self, mate: Neighbour, *, only_in_doubt: bool = False) -> None:
        gone = [entry for entry in self._table if entry.last_hop == mate]
        for entry in gone:
            if entry.is_in_doubt or not only_in_doubt:
                self._table.remove(entry)

    def hops(self) -> dict[str, Hop]:
        """The broker of each subscription, by id."""
        return {_id_of(entry.subscription.id): entry.last_hop for entry in self._table}

    def filters(self) -> dict[str, Filter]:
        """The filter of each subscription, by id."""
        return {_id_of(e.subscription.id): e.subscription.filter for e in self._table}

    def check(self) -> None:
        self._table.check()


def _key(id: SubscriptionId, mate: Neighbour) -> SubscriptionId:
    return SubscriptionId(f"{mate.name} {id}")


def _id_of(key: SubscriptionId) -> str:
    return key.partition(" ")[2]
