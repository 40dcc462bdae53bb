"""What a host gives a context of a model's window."""

from __future__ import annotations

from typing import Any

import pytest

from clew.config.values import CompactionConfig, Config
from clew.host.services import Services
from clew.providers.api import Model


@pytest.mark.parametrize("window", [4_000, 8_000, 16_000, 128_000, 1_000_000])
@pytest.mark.parametrize("share", [0, 8, 4, 2])
@pytest.mark.parametrize("high", [0.5, 0.78, 0.95])
def test_high_water_lies_below_the_room(window: int, share: int, high: float) -> None:
    """Else a compaction would come only when a request does not fit, and somebody waits for it."""
    anything: Any = None
    config = Config(compaction=CompactionConfig(high=high, low=high / 2))
    services = Services(anything, anything, anything, config)
    model = Model(name="m", provider="p", window=window, reply=window // share if share else 0)
    budget = services.budget(model)
    assert budget.high_tokens < 0.91 * budget.room
    assert budget.high <= high
    assert budget.low_tokens < 0.76 * budget.high_tokens
