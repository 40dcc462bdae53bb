"""Which tools a conversation has from now on, of those it had and those there are."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from clew.providers.api import ToolSpec
from clew.tools.pin import fold

NAMES = [f"tool{number}" for number in range(12)]
FOLDS = 400
"""Of one example; with 25 of them, 10,000."""


def spec(name: str, version: int = 0) -> ToolSpec:
    return ToolSpec(name, f"version {version}", {"type": "object"})


def named(*names: str, version: int = 0) -> tuple[ToolSpec, ...]:
    return tuple(spec(name, version) for name in names)


def nobody(_: str) -> bool:
    return False


def everybody(_: str) -> bool:
    return True


def test_a_new_conversation_has_all_there_are_in_their_order() -> None:
    """S35.4 Nothing is inherited."""
    assert fold(None, named("b", "a", "c"), everybody) == named("b", "a", "c")
    assert fold((), named("b", "a"), nobody) == named("b", "a")


def test_what_stays_keeps_its_place_and_has_the_fresh_schema() -> None:
    """S35.3 In both: saved position, fresh schema."""
    folded = fold(named("c", "a", "b"), named("a", "b", "c", version=1), nobody)
    assert folded == named("c", "a", "b", version=1)


def test_what_is_away_stays_as_it_was_pinned() -> None:
    """S35.3 Saved only, and its server only cannot be reached: kept."""
    folded = fold(named("a", "b"), named("b", version=1), lambda name: name == "a")
    assert folded == (spec("a"), spec("b", 1))


def test_what_is_gone_is_dropped_and_what_is_new_comes_last() -> None:
    """S35.3 Saved only and gone: dropped. New: appended at the tail."""
    assert fold(named("a", "b"), named("n", "b", "m"), nobody) == named("b", "n", "m")


def test_a_name_that_comes_twice_counts_once() -> None:
    """Providers refuse a request that names a tool twice."""
    twice = (spec("a"), spec("a", 1), spec("b"))
    assert fold(None, twice, nobody) == (spec("a"), spec("b"))
    assert fold(twice, (), everybody) == (spec("a"), spec("b"))


@given(st.integers(0, 2**32))
def test_ten_thousand_folds(seed: int) -> None:
    """S35.2, S35.3 Whatever comes, goes and is away: the rules hold at each fold, and a fold of
    the same again changes nothing."""
    chance = Random(seed)
    pinned: tuple[ToolSpec, ...] | None = None
    for version in range(FOLDS):
        there = named(*chance.sample(NAMES, chance.randint(0, len(NAMES))), version=version)
        away = set(chance.sample(NAMES, chance.randint(0, 6)))
        folded = fold(pinned, there, away.__contains__)
        had = {s.name: s for s in pinned or ()}
        fresh = {s.name: s for s in there}
        names = [s.name for s in folded]
        assert len(set(names)) == len(names)
        kept = [name for name in had if name in fresh or name in away]
        new = [name for name in fresh if name not in had]
        assert names == kept + new
        assert all(s == fresh.get(s.name, had.get(s.name)) for s in folded)
        assert fold(folded, there, away.__contains__) == folded
        pinned = folded if chance.random() < 0.9 else None
