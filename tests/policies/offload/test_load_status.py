"""The status machine is its table: every row works, and nothing else."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from godwit.policies.offload.load_status import (
    EDGE_TRANSITIONS,
    HEAD_TRANSITIONS,
    IllegalTransition,
    LoadStatus,
    StatusEvent,
    StatusMachine,
    StatusTransition,
    markdown_table,
    mermaid_diagram,
)

PAGE = Path(__file__).parents[3] / "docs" / "offload.md"
both = pytest.mark.parametrize(
    "transitions", [EDGE_TRANSITIONS, HEAD_TRANSITIONS], ids=["edge broker", "cluster-head"]
)


@both
def test_every_row_and_no_other_change(transitions: tuple[StatusTransition, ...]) -> None:
    rows = {(row.source, row.event): row.target for row in transitions}
    assert len(rows) == len(transitions), "an event leads to one status"
    for status, event in product(LoadStatus, StatusEvent):
        machine = StatusMachine(transitions)
        machine.status = status
        if (status, event) in rows:
            assert machine.permits(event)
            machine.apply(event)
            assert machine.status is rows[status, event]
        else:
            assert not machine.permits(event)
            with pytest.raises(IllegalTransition, match=event.value):
                machine.apply(event)
            assert machine.status is status


@both
def test_every_status_leads_back_to_ok(transitions: tuple[StatusTransition, ...]) -> None:
    used = {row.source for row in transitions} | {row.target for row in transitions}
    leads = {LoadStatus.OK}
    for _ in LoadStatus:
        leads |= {row.source for row in transitions if row.target in leads}
    assert used <= leads


@pytest.mark.parametrize(
    ("status", "event", "target"),
    [
        pytest.param("OK", "exceeded", "N/A", id="above 0.9"),
        pytest.param("N/A", "relieved", "OK", id="not above 0.9"),
        pytest.param("OK", "accepted", "BUSY", id="OK accepts"),
        pytest.param("N/A", "accepted", None, id="N/A does not accept"),
        pytest.param("STABILIZING", "accepted", None, id="STABILIZING does not accept"),
        pytest.param("BUSY", "accepted", None, id="BUSY does not accept"),
        pytest.param("N/A", "granted", "BUSY", id="N/A may offload"),
        pytest.param("STABILIZING", "granted", "BUSY", id="STABILIZING may, if overloaded"),
        pytest.param("BUSY", "moved", "STABILIZING", id="a session is over"),
        pytest.param("STABILIZING", "settled", "OK", id="the load is steady"),
        pytest.param("STABILIZING", "settled high", "N/A", id="steady, but above 0.9"),
        pytest.param("STABILIZING", "exceeded", None, id="it settles first"),
    ],
)
def test_edge_brokers(status: str, event: str, target: str | None) -> None:
    """The rows that follow from the text of the thesis."""
    machine = StatusMachine(EDGE_TRANSITIONS)
    machine.status = LoadStatus(status)
    if target is None:
        assert not machine.permits(StatusEvent(event))
    else:
        assert machine.apply(StatusEvent(event)).target.value == target


@both
def test_the_manual_shows_the_tables_that_run(transitions: tuple[StatusTransition, ...]) -> None:
    page = PAGE.read_text()
    assert markdown_table(transitions) in page, (
        f"docs/offload.md must contain:\n{markdown_table(transitions)}"
    )
    assert mermaid_diagram(transitions) in page, (
        f"docs/offload.md must contain:\n{mermaid_diagram(transitions)}"
    )
