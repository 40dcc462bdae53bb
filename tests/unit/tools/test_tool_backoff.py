"""When to try again."""

from __future__ import annotations

from clew.tools.backoff import Backoff


def test_waits_double_up_to_a_limit_and_begin_anew() -> None:
    backoff = Backoff(first=1.0, most=5.0)
    assert backoff.left(100.0) == 0.0
    waits: list[float] = []
    for _ in range(5):
        backoff.failed(100.0)
        waits.append(backoff.left(100.0))
    assert waits == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert backoff.left(103.0) == 2.0
    assert backoff.left(200.0) == 0.0
    backoff.worked()
    assert backoff.left(100.0) == 0.0
    backoff.failed(100.0)
    assert backoff.left(100.0) == 1.0
