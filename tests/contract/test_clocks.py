"""Clocks that jump: nothing is ordered by time, and no window is waited for twice.

Each thing that looks at the time is brought to where it waits, the clock jumps, by years too, and
it goes on after its window, or, where the clock went back by less than that, one window later
(docs/operating/clocks.md).
"""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from talk import begun, compact, seqs, talk, texts

import clew
from clew.compaction import policy
from clew.domain.turns import CallPlan
from clew.host.limits import day_of
from clew.store.outbox import BACKOFF
from clew.testing.clock import FakeClock

SECOND = 1_000_000
HOUR, DAY = 3_600 * SECOND, 86_400 * SECOND
YEAR = 365 * DAY
TTL = 60 * SECOND
JUMPS = (-40 * YEAR, -3 * DAY, -30 * SECOND, 30 * SECOND, 3 * DAY, 40 * YEAR)

jumps = pytest.mark.parametrize(
    "jump", JUMPS, ids=["40y back", "3d back", "30s back", "30s on", "3d on", "40y on"]
)


def replied(conv: clew.Conversation, text: str) -> None:
    turn = begun(conv.begin_turn([clew.user("q")]))
    turn.finish([clew.assistant(text)], deliveries=[clew.Delivery("web:1", text)])


def sent(profile: clew.Profile) -> list[str]:
    """All that is due, taken and sent."""
    found: list[str] = []
    while (taken := profile.take_delivery()) is not None:
        assert profile.settle_delivery(taken) is not None
        found.append(str(taken.payload))
    return found


@jumps
def test_the_log_is_in_the_order_of_its_writes(
    jump: int, conv: clew.Conversation, clock: FakeClock
) -> None:
    for n in range(4):
        talk(conv, str(n))
        clock.advance(jump if n % 2 else -jump)
    assert texts(conv) == ["0", "1", "2", "3"]
    assert seqs(list(conv.messages())) == [1, 2, 3, 4]
    assert [m["content"] for m in conv.context()] == ["0", "1", "2", "3"]


@pytest.mark.requires("follow")
@jumps
def test_followers_see_changes_in_their_order_once(
    jump: int, profile: clew.Profile, clock: FakeClock
) -> None:
    conv, mark = profile.create(), profile.mark()
    for n in range(4):
        talk(conv, str(n))
        clock.advance(jump if n % 2 else -jump)
    seen: list[int] = []

    def all_seen() -> bool:
        return len(seen) >= 4

    for change in profile.follow(since=mark, until=all_seen):
        if change.kind == "appended":
            assert change.first_seq is not None
            assert change.last_seq is not None
            seen += range(change.first_seq, change.last_seq + 1)
    assert seen == [1, 2, 3, 4]


@jumps
def test_a_silent_holder_keeps_the_right_for_its_time_at_most(
    jump: int, conv: clew.Conversation, clock: FakeClock
) -> None:
    """And never writes after another has it."""
    old = begun(conv.begin_turn([clew.user("q")], holder="one", ttl=TTL))
    clock.advance(jump)
    clock.advance(2 * TTL)
    new = conv.resume_turn(holder="other", ttl=TTL)
    with pytest.raises(clew.RightLost):
        old.record([clew.assistant("late")])
    new.finish([clew.assistant("in time")])
    assert texts(conv) == ["q", "in time"]


@jumps
def test_a_holder_that_writes_goes_on(jump: int, conv: clew.Conversation, clock: FakeClock) -> None:
    """A jump alone takes nothing from it: another has to ask, and is held off by its next write."""
    turn = begun(conv.begin_turn([clew.user("q")], holder="one", ttl=TTL))
    clock.advance(jump)
    turn.renew()
    with pytest.raises(clew.TurnOpen):
        conv.resume_turn(holder="other", ttl=TTL)
    turn.finish([clew.assistant("a")])
    assert texts(conv) == ["q", "a"]


@pytest.mark.parametrize("deadline", [None, 180 * SECOND])
@jumps
def test_an_attempt_of_the_dead_holds_others_back_for_its_window_at_most(
    jump: int, deadline: int | None, conv: clew.Conversation, clock: FakeClock
) -> None:
    talk(conv, *"abcd")
    until = None if deadline is None else clock.now() + deadline
    conv.open_attempt("soft", deadline=until)
    clock.advance(jump)
    clock.advance(2 * policy.WINDOW)
    for _ in range(len(policy.COOLDOWNS)):  # abandoned, it is a failure of the summariser's
        allowed = policy.guard("soft", attempts=conv.attempts(), now=clock.now(), threshold=1)
        if allowed.paid:
            break
        clock.advance(policy.COOLDOWNS[0])
    assert (allowed.go, allowed.paid) == (True, True)
    assert compact(conv, 2) is not None


@jumps
def test_strikes_hold_back_for_a_window_at_most(
    jump: int, conv: clew.Conversation, clock: FakeClock
) -> None:
    talk(conv, *"abcd")
    for _ in range(policy.STRIKES):
        conv.fail_attempt(conv.open_attempt("soft").number, verdict="no-op")
    blocked = policy.guard("soft", attempts=conv.attempts(), now=clock.now(), threshold=1)
    assert not blocked.go
    clock.advance(jump)
    clock.advance(2 * policy.WINDOW)
    assert policy.guard("soft", attempts=conv.attempts(), now=clock.now(), threshold=1).go


@jumps
def test_a_delivery_waits_for_the_longest_back_off_at_most(
    jump: int, profile: clew.Profile, clock: FakeClock
) -> None:
    """In the order of their conversation, and none twice once it is settled."""
    conv = profile.create()
    replied(conv, "first")
    clock.advance(jump)
    replied(conv, "second")
    clock.advance(BACKOFF[-1])
    taken = profile.take_delivery()
    assert taken is not None
    profile.settle_delivery(taken, "no network")
    clock.advance(-jump)
    clock.advance(2 * BACKOFF[-1])
    assert sent(profile) == ["first", "second"]
    clock.advance(jump)
    clock.advance(YEAR)
    assert profile.settle_delivery(taken) is None
    assert sent(profile) == []


@jumps
def test_a_boundary_is_told_after_the_longest_back_off_at_most(
    jump: int, profile: clew.Profile, clock: FakeClock
) -> None:
    def fails(boundary: clew.Boundary) -> None:
        raise RuntimeError("no room")

    told: list[int] = []

    def tell(boundary: clew.Boundary) -> None:
        told.append(boundary.generation)

    profile.subscribe("memory")
    conv = profile.create()
    talk(conv, *"abcd")
    compact(conv, 1)
    profile.deliver("memory", fails)
    clock.advance(jump)
    compact(conv, 2)
    clock.advance(2 * BACKOFF[-1])
    profile.deliver("memory", tell)
    clock.advance(-jump)
    profile.deliver("memory", tell)
    assert told == [1, 2]


@pytest.mark.requires("jobs")
@jumps
def test_a_job_is_due_again_after_its_time_at_most(
    jump: int, store: clew.Store, clock: FakeClock
) -> None:
    """And one of the dead is free after its time to live."""
    right = store.claim_job("daily", every=DAY)
    assert right is not None
    store.release_job(right)
    clock.advance(jump)
    clock.advance(2 * DAY)
    dead = store.claim_job("daily", every=DAY, ttl=TTL)
    assert dead is not None
    clock.advance(jump)
    clock.advance(2 * TTL)
    assert store.claim_job("daily", every=DAY) is not None
    assert not store.release_job(dead)


@pytest.mark.requires("jobs")
@jumps
def test_a_redelivery_is_known_whatever_the_clock_did(
    jump: int, store: clew.Store, clock: FakeClock
) -> None:
    """Housekeeping while the clock is wrong forgets none, nor does it once it is right again."""
    profile = store.profile("me")

    def deliver(key: str) -> clew.Received:
        return profile.receive("chat", [clew.user(key)], source="tg", account="a", key=key)

    deliver("before")
    clock.advance(jump)
    store.maintain()
    assert deliver("before").again
    deliver("meanwhile")
    store.maintain()
    clock.advance(-jump)
    store.maintain()
    assert deliver("before").again
    assert deliver("meanwhile").again
    assert texts(profile.open(deliver("before").conversation)) == ["before", "meanwhile"]


@pytest.mark.requires("usage")
@jumps
def test_what_was_used_on_other_days_is_none_of_today(
    jump: int, conv: clew.Conversation, profile: clew.Profile, clock: FakeClock
) -> None:
    """A clock that was ahead uses up no day until then."""

    def today() -> int:
        return sum(row.usage.input for row in profile.usage_by("model", *day_of(clock.now())))

    def call() -> None:
        number = conv.plan_call(CallPlan(model="m"))
        conv.finish_call(number, clew.CallResult(usage=clew.Usage(input=100)))

    call()
    before = day_of(clock.now())
    clock.advance(jump)
    assert today() == (100 if day_of(clock.now()) == before else 0)
    call()
    clock.advance(-jump)
    assert today() == (200 if day_of(clock.now() + jump) == before else 100)


@jumps
def test_a_list_has_each_conversation_once(
    jump: int, profile: clew.Profile, clock: FakeClock
) -> None:
    """A list is by the time of the last activity, as the clock had it then, and nothing else is."""
    ids = set[str]()
    for n in range(6):
        conv = profile.create()
        talk(conv, str(n))
        ids.add(conv.id)
        clock.advance(jump if n % 2 else -jump)
    found: list[str] = []
    cursor = None
    while True:
        page = profile.list(limit=2, cursor=cursor)
        found += [row.id for row in page.items]
        if (cursor := page.next) is None:
            break
    assert sorted(found) == sorted(ids)


# ---------------------------------------------------------------- any jumps

STEP = st.one_of(
    st.tuples(st.just("jump"), st.integers(-3 * YEAR, 3 * YEAR)),
    st.tuples(st.just("jump"), st.integers(-2 * HOUR, 2 * HOUR)),
    st.tuples(st.just("append"), st.just(0)),
    st.tuples(st.just("turn"), st.just(0)),
    st.tuples(st.just("receive"), st.integers(0, 2)),
    st.tuples(st.just("send"), st.integers(0, 1)),
)
names = count()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(steps=st.lists(STEP, max_size=25))
def test_whatever_the_clock_does_nothing_is_lost_doubled_or_stuck(
    steps: list[tuple[str, int]], store: clew.Store, clock: FakeClock
) -> None:
    """The log is dense and in order, each reply is sent exactly once and in order, each delivery
    is received once, and one window later nothing waits any more."""
    profile = store.profile(f"p{next(names)}")
    conv = profile.conversation("chat", source="tg")
    said, replies, out = list[str](), list[str](), list[str]()
    received = set[str]()
    for n, (what, value) in enumerate(steps):
        if what == "jump":
            clock.advance(max(value, -clock.now() + 10 * YEAR))
        elif what == "append":
            conv.append([clew.user(str(n))])
            said.append(str(n))
        elif what == "turn":
            turn = begun(conv.begin_turn([clew.user(str(n))]))
            turn.finish([clew.assistant(str(n))], deliveries=[clew.Delivery("tg:1", str(n))])
            said += [str(n), str(n)]
            replies.append(str(n))
        elif what == "receive":
            key = str(value)
            got = profile.receive("chat", [clew.user(key)], source="tg", account="a", key=key)
            assert got.again == (key in received)
            said += [] if got.again else [key]
            received.add(key)
        elif (taken := profile.take_delivery()) is not None:
            settled = profile.settle_delivery(taken, "no network" if value else None)
            assert settled is not None
            out += [] if value else [str(taken.payload)]
    clock.advance(2 * BACKOFF[-1])
    out += sent(profile)
    assert out == replies
    assert texts(conv) == said
    assert seqs(list(conv.messages())) == list(range(1, len(said) + 1))
    assert sent(profile) == []
