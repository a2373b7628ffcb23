"""The offload algorithms choose what the loops of the thesis choose, which compute every report."""

from __future__ import annotations

import pytest
from tests.policies.offload.plain import PlainOffload
from tests.policies.offload.scenes import random_instance

from godwit.policies.offload.broker_load import OffloadAction


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
