"""The progress and the account of a change, as text."""

from __future__ import annotations

import pytest

from godwit.api.network_api import (
    Authority,
    BrokerLoad,
    ChangeKind,
    ChangeRequest,
    ChangeState,
    ChangeStep,
    NetworkChange,
    StepKind,
    StepState,
)
from godwit.cli.network_report import ChangeProgress, change_lines


def change(*steps: ChangeStep, **facts: object) -> NetworkChange:
    given = {
        "number": 7,
        "request": ChangeRequest(kind=ChangeKind.DRAIN, brokers=["B1"]),
        "state": ChangeState.RUNNING,
        "authority": Authority(1, "c"),
        "asked_s": 0.0,
        "steps": list(steps),
    }
    return NetworkChange(**{**given, **facts})  # type: ignore[arg-type]


def progress(*changes: NetworkChange) -> None:
    shown = ChangeProgress()
    for each in changes:
        shown.show(each)


def test_the_progress_names_each_step_and_why_one_is_tried_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tree = ChangeStep(kind=StepKind.RESHAPE, broker="the network")
    running = ChangeStep(kind=StepKind.RESHAPE, broker="the network", state=StepState.RUNNING)
    again = ChangeStep(
        kind=StepKind.RESHAPE,
        broker="the network",
        state=StepState.RUNNING,
        says="is tried again: B2 has failed",
    )
    over = ChangeStep(
        kind=StepKind.RESHAPE, broker="the network", state=StepState.DONE, ended_s=1.0
    )
    progress(change(tree), change(running), change(running), change(again), change(over))
    assert capsys.readouterr().err.splitlines() == [
        "change 7, step 1 of 1: beginning",
        "change 7, step 1 of 1: reshape the network",
        "change 7, step 1 of 1: reshape the network is tried again: B2 has failed",
        "change 7, step 1 of 1: ending",
    ]


def test_the_account_says_what_its_rates_are() -> None:
    before, after = {"B1": BrokerLoad(clients=2)}, {"B1": BrokerLoad(clients=0)}
    done = change(state=ChangeState.DONE, ended_s=2.0, before=before, after=after)
    text = "\n".join(change_lines(done))
    assert "took 2.0 s" in text
    assert "averages of the last seconds" in text


def test_a_dry_run_counts_who_would_move() -> None:
    went = {"alice": "B2", "bob": "B3", "carol": "B3"}
    drain = ChangeStep(kind=StepKind.DRAIN, broker="B1", clients=3, went=went)
    lines = list(change_lines(change(drain, state=ChangeState.PROPOSED)))
    assert "    1 client would move to B2" in lines
    assert "    2 clients would move to B3" in lines
