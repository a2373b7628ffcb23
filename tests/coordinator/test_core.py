"""What the coordinator knows between reports."""

from __future__ import annotations

import msgspec
from tests.coordinator.scenes import coordinator, look, report, reported

from godwit.coordinator.coordinator_core import Coordinator


def arrives(core: Coordinator, now_s: float, *, at: str, who: str) -> None:
    """A broker reports somebody whose BE subscriptions it does not know the rates of, yet."""
    core.report(msgspec.structs.replace(report(at, [who]), rates={}), now_s)


def test_what_a_mover_brings_is_known_from_where_it_was() -> None:
    core = coordinator(2)
    reported(core, 1.0, {"B1": ["s1"], "B2": []})
    assert core.situation(1.0).load_of == {"B1": 200.0, "B2": 0.0}
    assert look(core, 2.0)
    reported(core, 11.0, {"B1": []})
    arrives(core, 11.0, at="B2", who="s1")
    assert core.situation(12.0).load_of == {"B1": 0.0, "B2": 200.0}


def test_it_may_be_nowhere_for_a_look_but_not_for_two() -> None:
    for looks, load in ((1, 200.0), (2, 0.0)):
        core = coordinator(2)
        reported(core, 1.0, {"B1": ["s1"], "B2": []})
        for number in range(looks):
            reported(core, 11.0 + 10 * number, {"B1": [], "B2": []})
            assert look(core, 12.0 + 10 * number)
        arrives(core, 25.0, at="B2", who="s1")
        assert core.situation(26.0).load_of == {"B1": 0.0, "B2": load}


def test_what_is_shown_is_of_now() -> None:
    core = coordinator(2)
    reported(core, 1.0, {"B1": ["s1"], "B2": []})
    shown = core.brokers(3.0)
    assert [(b.broker, b.load, b.report_age_s) for b in shown.brokers] == [
        ("B1", 200.0, 2.0),
        ("B2", 0.0, 2.0),
    ]
    reported(core, 20.0, {"B2": ["s2"]})
    shown = core.brokers(31.0)
    assert [(b.broker, b.load, b.is_live) for b in shown.brokers] == [
        ("B1", 0.0, False),
        ("B2", 200.0, True),
    ]
    assert shown.balance.brokers == 1


def test_who_is_at_two_brokers_is_where_the_later_report_says() -> None:
    core = coordinator(2)
    reported(core, 1.0, {"B1": [], "B2": ["s1"]})
    reported(core, 2.0, {"B1": ["s1"]})
    assert core.home("s1") == "B1"
    assert core.situation(2.0).subscribers_of == {"B1": 1, "B2": 0}
    reported(core, 3.0, {"B2": ["s1"]})
    assert core.home("s1") == "B2"
    assert core.situation(3.0).subscribers_of == {"B1": 0, "B2": 1}
    reported(core, 4.0, {"B1": []})
    assert core.home("s1") == "B2"
    reported(core, 5.0, {"B2": []})
    assert core.home("s1") is None
