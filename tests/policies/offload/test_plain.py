"""The offload algorithms choose what the loops of the thesis choose, which compute every report."""

from __future__ import annotations

import pytest
from tests.policies.offload.plain import PlainOffload
from tests.policies.offload.scenes import info, plan, random_instance, sampled

from godwit.policies.offload.broker_load import OffloadAction
from godwit.policies.offload.settings import BalancingSettings


@pytest.mark.parametrize("action", OffloadAction, ids=lambda action: action.value)
@pytest.mark.parametrize("block", range(6))
def test_the_same_plan(action: OffloadAction, block: int) -> None:
    for seed in range(50 * block, 50 * block + 50):
        case = random_instance(seed, action)
        plain = PlainOffload(
            action, case.local, case.remote, case.css, case.sampled, case.settings,
            overloaded=case.overloaded,
        )  # fmt: skip
        chosen = plain.run()
        found = case.plan()

        assert found.clients == chosen, f"seed {seed}"
        assert found.difference_after == plain.current, f"seed {seed}"
        assert found.local_after == plain.local, f"seed {seed}"
        assert found.remote_after == plain.remote, f"seed {seed}"


def test_a_step_may_leave_a_group_with_one_client_too_many() -> None:
    """Two of b would go at first; after a they would only swap the loads, and one is right."""
    bits = {"a": (1, "11111" + "0" * 9), "b": (2, "0" * 5 + "11" + "0" * 7)}
    samples = sampled(bits, lcss="1" * 14, size_bytes=50)
    local, remote = info("B1", ir=14, ou=708, ot=1000), info("B2", ir=14, ot=1000)
    settings = BalancingSettings()

    found = plan(OffloadAction.OUTPUT, local, remote, samples)
    plain = PlainOffload(
        OffloadAction.OUTPUT, local, remote, (), samples, settings, overloaded=False
    )

    assert found.clients == plain.run() == ("a0", "b0")
    assert found.difference_after == plain.current
