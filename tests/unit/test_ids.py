"""Ids: random from the first character, or sorted by time; the same seed gives the same."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from clew.clock import SystemClock
from clew.ids import ALPHABET, Ids, encode_base32
from clew.testing.clock import FakeClock, seeded_ids


def test_conversation_ids_differ_from_the_first_characters() -> None:
    """Chats of one minute have different prefixes, so a short one names one."""
    ids = Ids()
    made = [ids.conversation() for _ in range(200)]
    assert all(len(id) == 26 and set(id) <= set(ALPHABET) for id in made)
    assert len({id[:6] for id in made}) == 200
    assert len({id[1] for id in made}) > 10


@given(st.integers(0, 2**128 - 1), st.integers(0, 2**128 - 1))
def test_base32_keeps_order_and_difference(a: int, b: int) -> None:
    assert (encode_base32(a) < encode_base32(b)) == (a < b)
    assert (encode_base32(a) == encode_base32(b)) == (a == b)


def test_no_letter_reads_as_another() -> None:
    assert len(ALPHABET) == 32
    assert not set("ilou") & set(ALPHABET)
    assert ALPHABET.islower()


def test_uids_are_uuids_of_version_7_that_sort_by_time() -> None:
    clock = FakeClock(step=1000)
    ids = Ids(clock)
    made = [ids.uid() for _ in range(100)]
    assert made == sorted(made)
    for uid in made:
        value = uuid.UUID(bytes=uid)
        assert (value.version, value.variant) == (7, uuid.RFC_4122)
    first = int.from_bytes(made[0][:6], "big")
    assert abs(first - clock.now() // 1000) <= 101


def test_one_moment_still_gives_different_uids() -> None:
    ids = Ids(FakeClock(step=0))
    assert len({ids.uid() for _ in range(1000)}) == 1000


def test_the_same_seed_gives_the_same_ids() -> None:
    one, two = (seeded_ids(FakeClock(), 7) for _ in range(2))
    assert [one.conversation(), one.uid()] == [two.conversation(), two.uid()]
    assert seeded_ids(FakeClock(), 8).conversation() != one.conversation()


def test_the_system_clock_counts_microseconds() -> None:
    now = SystemClock().now()
    assert 1_700_000_000_000_000 < now < 5_000_000_000_000_000


def test_a_fake_clock_moves_when_told() -> None:
    clock = FakeClock(100, step=0)
    assert (clock.now(), clock.now()) == (100, 100)
    clock.advance(-60)
    assert clock.now() == 40
    assert [FakeClock(0).now() for _ in range(2)] == [1, 1]
