"""Names in a tree of brokers: claims, requests and their races, without sockets."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import NamedTuple

import pytest

from godwit.broker.effects import NameContested, NameGranted, NameLost, Send
from godwit.broker.routing import Answer, Place
from godwit.broker.stimuli import (
    Hop,
    LinkKind,
    LocalClient,
    NameDecided,
    NameLeft,
    NameStimulus,
    NameWaitOver,
    NameWish,
    Neighbour,
)
from godwit.content.messages import NameMessage, ResyncDone
from godwit.overlay.topology import Topology, chain, random_tree
from godwit.overlay.tree.tree_routing import TreeRouting

FEED = LocalClient("feed")


class Session(NamedTuple):
    broker: str
    incarnation: str
    attachment: int


class Network:
    """Routers with FIFO links; each message is delivered when a test says so."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.routers = {
            name: TreeRouting(Place.of(name, topology.neighbours(name)))
            for name in topology.brokers
        }
        self.links: dict[tuple[str, str], deque[NameMessage | ResyncDone]] = {
            (a, b): deque() for a in topology.brokers for b in topology.neighbours(a)
        }
        self.waiting: dict[Session, bool] = {}
        """Clients that have called."""
        self.sessions: dict[Session, bool] = {}
        """Those that were welcomed, and whether they are connected."""
        self.told: dict[str, str] = {}
        """Incarnations that were refused or have ended, and the reason."""

    def call(self, at: str, incarnation: str, attachment: int = 1, take_over: bool = False) -> None:
        self.waiting[Session(at, incarnation, attachment)] = True
        self.stimulate(at, NameWish(FEED, incarnation, attachment, 0, take_over))

    def leave(self, session: Session) -> None:
        self.waiting.pop(session, None)
        self.sessions.pop(session, None)
        self.stimulate(session.broker, NameLeft(FEED, session.incarnation, session.attachment))

    def stimulate(self, at: str, stimulus: NameStimulus) -> None:
        self._perform(at, self.routers[at].names.stimulate(stimulus))

    def _of(self, at: str, incarnation: str) -> list[Session]:
        here = [*self.waiting, *self.sessions]
        return [s for s in here if (s.broker, s.incarnation) == (at, incarnation)]

    def _perform(self, at: str, answers: list[Answer]) -> None:
        for answer in answers:
            match answer:
                case Send(to=to, message=message):
                    assert isinstance(message, NameMessage | ResyncDone)
                    self.links[at, to.name].append(message)
                case NameGranted(incarnation=incarnation):
                    for session in self._of(at, incarnation):
                        if self.waiting.pop(session, None):
                            self._replace_former(session)
                            self.sessions[session] = True
                case NameLost(incarnation=incarnation, reason=reason):
                    self.told[incarnation] = reason
                    for session in self._of(at, incarnation):
                        self.leave(session)
                case NameContested(contest=contest):
                    held = self._of(at, contest.holder.incarnation)
                    is_there = any(self.waiting.get(s) or self.sessions.get(s) for s in held)
                    is_free = contest.request.take_over or not is_there
                    if is_free:
                        for session in held:
                            self.told[session.incarnation] = "taken over"
                            self.leave(session)
                    self.stimulate(at, NameDecided(contest, is_free, f"it is at {at}"))
                case _:
                    raise AssertionError(answer)
        self.routers[at].check()

    def _replace_former(self, session: Session) -> None:
        """A client has one session at a broker."""
        for former in [s for s in self.sessions if s[:2] == session[:2]]:
            self.leave(former)

    def deliver(self, a: str, b: str) -> None:
        message = self.links[a, b].popleft()
        last_hop: Hop = Neighbour(a)
        self._perform(b, self.routers[b].handle(message, last_hop))

    @property
    def under_way(self) -> list[tuple[str, str]]:
        return [link for link, queue in self.links.items() if queue]

    def settle(self, random: Random | None = None) -> None:
        while self.under_way:
            a, b = random.choice(self.under_way) if random else self.under_way[0]
            self.deliver(a, b)

    def cut(self, a: str, b: str) -> None:
        for one, other in ((a, b), (b, a)):
            self.links[one, other].clear()
            self._perform(one, self.routers[one].link_down(Neighbour(other)))

    def heal(self, a: str, b: str) -> None:
        for one, other in ((a, b), (b, a)):
            self._perform(one, self.routers[one].link_up(Neighbour(other), LinkKind.PRIMARY))

    def restart(self, name: str) -> None:
        """A broker comes back with empty tables, and has no clients."""
        neighbours = self.topology.neighbours(name)
        for other in neighbours:
            self.links[name, other].clear()
            self.links[other, name].clear()
        for session in [s for s in (*self.sessions, *self.waiting) if s.broker == name]:
            self.sessions.pop(session, None)
            self.waiting.pop(session, None)
        self.routers[name] = TreeRouting(Place(name))
        self.routers[name].recovering()
        for other in neighbours:
            self._perform(name, self.routers[name].link_up(Neighbour(other)))
            self._perform(other, self.routers[other].link_restarted(Neighbour(name)))
        self._perform(name, list(self.routers[name].recovered()))

    def holders(self) -> set[str]:
        return {session.incarnation for session in self.sessions}

    def check(self) -> None:
        """At most one incarnation has the name, and every broker knows where it is."""
        assert not self.under_way
        assert not self.waiting, "a caller waits for ever"
        assert len(self.holders()) <= 1, self.sessions
        if not self.sessions:
            assert {r.names.holder("feed") for r in self.routers.values()} == {None}
            return
        latest = max(self.sessions, key=lambda s: s.attachment)
        for name in self.routers:
            at = name
            for _ in self.routers:
                holder = self.routers[at].names.holder("feed")
                if not isinstance(holder, Neighbour):
                    break
                at = holder.name
            assert at in {s.broker for s in self.sessions}, f"{name} looks for it at {at}"
            assert at == latest.broker or len(self.sessions) > 1


def test_the_first_of_two_that_come_one_after_the_other_stays() -> None:
    network = Network(chain(3))
    network.call("B1", "zz")
    network.settle()
    network.call("B3", "aa")
    network.settle()
    assert network.holders() == {"zz"}
    assert network.told == {"aa": "it is at B1"}
    network.check()


def test_the_name_is_granted_when_every_broker_has_confirmed_it() -> None:
    network = Network(chain(3))
    network.call("B1", "aa")
    for a, b in (("B1", "B2"), ("B2", "B3"), ("B3", "B2")):
        assert not network.sessions
        network.deliver(a, b)
    network.deliver("B2", "B1")
    assert network.holders() == {"aa"}


def test_one_that_takes_over_ends_the_other() -> None:
    network = Network(chain(3))
    network.call("B1", "zz")
    network.settle()
    network.call("B3", "aa", take_over=True)
    network.settle()
    assert network.holders() == {"aa"}
    assert network.told == {"zz": "taken over"}
    network.check()


def test_a_session_whose_client_is_away_yields() -> None:
    network = Network(chain(3))
    network.call("B1", "zz")
    network.settle()
    network.sessions[Session("B1", "zz", 1)] = False
    network.call("B3", "aa")
    network.settle()
    assert network.holders() == {"aa"}
    network.check()


@pytest.mark.parametrize("first", ["aa", "zz"])
def test_of_two_at_the_same_time_one_stays_and_the_other_is_told(first: str) -> None:
    network = Network(chain(3))
    second = "zz" if first == "aa" else "aa"
    network.call("B1", first)
    network.call("B3", second)
    network.settle()
    assert network.holders() == {"zz"}
    assert list(network.told) == ["aa"]
    network.check()


def test_a_client_that_moves_keeps_its_name_and_the_old_broker_does_not_withdraw_it() -> None:
    network = Network(chain(3))
    network.call("B1", "aa", 1)
    network.settle()
    network.call("B3", "aa", 2)
    assert Session("B3", "aa", 2) in network.sessions, "it need not wait: the name is its own"
    network.settle()
    network.leave(Session("B1", "aa", 1))
    network.settle()
    assert network.routers["B2"].names.holder("feed") == Neighbour("B3")
    network.check()


def test_a_client_that_stays_after_all_keeps_its_name() -> None:
    network = Network(chain(3))
    network.call("B1", "aa", 1)
    network.settle()
    network.call("B3", "aa", 2)
    network.settle()
    network.leave(Session("B3", "aa", 2))
    network.settle()
    assert network.routers["B3"].names.holder("feed") == Neighbour("B2")
    network.call("B3", "zz")
    network.settle()
    assert network.holders() == {"aa"}
    network.check()


@pytest.mark.parametrize("at", ["B1", "B2", "B3"])
def test_a_client_that_moves_is_taken_over_at_both_brokers(at: str) -> None:
    network = Network(chain(3))
    network.call("B1", "zz", 1)
    network.settle()
    network.call("B3", "zz", 2)
    network.settle()
    network.call(at, "aa", take_over=True)
    network.settle()
    assert network.holders() == {"aa"}
    assert set(network.told) == {"zz"}
    network.check()


def test_two_parts_that_are_linked_again_have_one_holder() -> None:
    network = Network(chain(4))
    network.cut("B2", "B3")
    network.call("B1", "aa")
    network.call("B4", "zz")
    network.settle()
    assert network.holders() == {"aa", "zz"}
    network.heal("B2", "B3")
    network.settle()
    assert network.holders() == {"zz"}
    assert list(network.told) == ["aa"]
    network.check()


def test_a_neighbour_that_is_away_is_not_waited_for() -> None:
    network = Network(chain(3))
    network.call("B3", "zz")
    network.settle()
    names = network.routers["B2"].names
    assert names.link_away(Neighbour("B3"), is_away=True) == []
    network.call("B1", "aa")
    while ("B2", "B1") in network.under_way or ("B1", "B2") in network.under_way:
        for link in (("B1", "B2"), ("B2", "B1")):
            if link in network.under_way:
                network.deliver(*link)
    assert "aa" in network.holders(), "the holder's broker cannot be reached"
    names.link_away(Neighbour("B3"), is_away=False)
    network.settle()
    assert network.holders() == {"aa"}
    network.check()


def test_a_part_that_does_not_answer_keeps_only_those_out_whose_name_it_has() -> None:
    network = Network(chain(3))
    network.call("B1", "free")
    network.stimulate("B1", NameWaitOver(FEED, "free"))
    assert network.holders() == {"free"}
    network.settle()
    network.call("B3", "late")
    network.stimulate("B3", NameWaitOver(FEED, "late"))
    assert "does not answer" in network.told["late"]
    network.call("B3", "bold", take_over=True)
    network.stimulate("B3", NameWaitOver(FEED, "bold"))
    network.settle()
    assert network.holders() == {"bold"}
    network.check()


def test_what_a_restarted_broker_does_not_repeat_is_free() -> None:
    network = Network(chain(3))
    network.call("B2", "aa")
    network.settle()
    network.restart("B2")
    network.settle()
    assert network.routers["B1"].names.holder("feed") is None
    network.check()


def test_a_restarted_broker_learns_the_names_of_others() -> None:
    network = Network(chain(3))
    network.call("B1", "aa")
    network.settle()
    network.restart("B2")
    network.settle()
    assert network.routers["B2"].names.holder("feed") == Neighbour("B1")
    network.check()


@pytest.mark.parametrize("seed", range(300))
def test_random_histories_end_with_one_holder_that_every_broker_knows(seed: int) -> None:
    random = Random(seed)
    topology = random_tree(random.randint(2, 7), random)
    network = Network(topology)
    attachments: dict[str, int] = {}
    links = [(a, b) for a in topology.brokers for b in topology.neighbours(a) if a < b]
    is_cut: set[tuple[str, str]] = set()
    for step in range(60):
        roll = random.random()
        if roll < 0.12:
            incarnation = f"{random.randrange(100):02}-{step}"
            attachments[incarnation] = 1
            network.call(random.choice(topology.brokers), incarnation, 1, random.random() < 0.3)
        elif roll < 0.22 and network.sessions:
            session = random.choice(list(network.sessions))
            attachment = attachments[session.incarnation] = attachments[session.incarnation] + 1
            network.call(random.choice(topology.brokers), session.incarnation, attachment)
        elif roll < 0.30 and network.sessions:
            network.leave(random.choice(list(network.sessions)))
        elif roll < 0.34 and network.sessions:
            network.sessions[random.choice(list(network.sessions))] = False
        elif roll < 0.38 and network.waiting:
            waiting = random.choice(list(network.waiting))
            network.stimulate(waiting.broker, NameWaitOver(FEED, waiting.incarnation))
        elif roll < 0.42:
            link = random.choice(links)
            (network.heal if link in is_cut else network.cut)(*link)
            is_cut ^= {link}
        elif roll < 0.44 and not is_cut:
            network.restart(random.choice(topology.brokers))
        elif network.under_way:
            network.deliver(*random.choice(network.under_way))
    for link in is_cut:
        network.heal(*link)
    network.settle(random)
    for session in list(network.waiting):  # The answer was lost with a link.
        network.stimulate(session.broker, NameWaitOver(FEED, session.incarnation))
    network.settle(random)
    network.check()
