"""Retention: what goes by itself, what never does, and in which steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from talk import HOLDER, begun, talk

import clew
from clew.domain.retention import DAY, Item, Policy, Rule
from clew.testing.clock import FakeClock

PEOPLE = Policy(rules=(Rule(who="people", age=30 * DAY),))
IMPORTS = Policy(rules=(Rule(who="imports", age=30 * DAY),))


def did(items: Sequence[Item]) -> list[tuple[str, str]]:
    return [(item.id, item.did) for item in items]


def machines(profile: clew.Profile) -> list[clew.Conversation]:
    """One of each kind that nobody had."""
    made = [
        profile.create(id="cron", source="cron"), profile.create(id="tool", source="tool"),
        profile.create(id="review", source="review"),
        profile.create(id="marked", source="telegram", automation=True),
    ]  # fmt: skip
    for conv in made:
        talk(conv, "a")
    return made


def test_s36_3_closed_then_binned_a_window_later_then_deleted(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    """S36.3, S36.4."""
    made = machines(profile)
    clock.advance(90 * DAY - 1)
    assert store.prune().items == ()
    clock.advance(1)
    first = store.prune()
    assert (first.closed, first.binned, first.deleted) == (4, 0, 0)
    assert {conv.info().end_reason for conv in made} == {"stale"}
    assert store.prune().items == ()
    clock.advance(90 * DAY)
    assert did(store.prune().items) == [(conv.id, "binned") for conv in made]
    assert store.prune().items == ()
    clock.advance(30 * DAY)
    last = store.prune()
    assert (last.closed, last.binned, last.deleted) == (0, 0, 4)
    assert profile.binned() == () == profile.list().items


def test_s36_3_a_message_undoes_the_close(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    conv = profile.conversation("job", source="cron")
    talk(conv, "a")
    clock.advance(90 * DAY)
    assert store.prune().closed == 1
    talk(conv, "b")
    clock.advance(89 * DAY)
    assert store.prune().items == ()
    assert (conv.info().ended, profile.conversation("job", source="cron").id) == (False, conv.id)


def test_s36_2_an_automation_that_ended_goes_without_being_closed(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    conv = profile.create(source="cron")
    conv.end("finished")
    clock.advance(90 * DAY)
    assert did(store.prune().items) == [(conv.id, "binned")]


def test_sub_agents_go_and_their_conversation_stays(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    conv = profile.create()
    sub = conv.delegate()
    for _ in range(2):
        clock.advance(90 * DAY)
        store.prune()
    assert [row.id for row in profile.binned()] == [sub.id]
    assert conv.children() == ()


def test_people_and_imports_stay_for_ever(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    person = profile.create(source="telegram")
    ended = profile.create(source="cli")
    ended.end("closed")
    profile.create(source="codex", automation=True, imported_at=clock.now())
    origin = profile.create(source="cron", archived=True)
    talk(origin, "a")
    origin.branch()  # a person's doing
    talk(person, "a")
    clock.advance(20 * 365 * DAY)
    assert store.prune().items == ()


def test_a_policy_that_names_people_needs_no_end(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    old = profile.create(source="telegram")
    clock.advance(20 * DAY)
    talk(old, "a")
    clock.advance(29 * DAY)
    assert store.prune(PEOPLE).items == ()
    clock.advance(DAY)
    assert did(store.prune(PEOPLE, dry_run=True).items) == [(old.id, "binned")]
    assert profile.binned() == ()
    (item,) = store.prune(PEOPLE).items
    assert (item.did, item.since, item.messages) == ("binned", clock.now() - 30 * DAY, 1)
    assert item.why == "people: 30d"


def test_an_import_counts_from_the_import(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    now = clock.now()
    conv = profile.create(source="codex", created_at=now - 900 * DAY, imported_at=now)
    clock.advance(30 * DAY - 1)
    assert store.prune(IMPORTS).items == ()
    clock.advance(1)
    assert did(store.prune(IMPORTS).items) == [(conv.id, "binned")]


@pytest.mark.parametrize("rule", [
    Rule(source="telegram", age=DAY), Rule(kind="root", age=DAY), Rule(profile="me", age=DAY),
])  # fmt: skip
def test_a_rule_names_by_source_kind_or_profile(
    store: clew.Store, profile: clew.Profile, clock: FakeClock, rule: Rule
) -> None:
    conv = profile.create(source="telegram")
    other = store.profile("you").create(source="cli")
    talk(other, "a")
    branch = other.branch()
    clock.advance(DAY)
    gone = {item.id for item in store.prune(Policy(rules=(rule,))).items}
    assert conv.id in gone
    assert branch.id not in gone
    assert (other.id in gone) == (rule.kind == "root")


def test_the_first_rule_that_names_it_decides(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    profile.create(source="cron", id="kept")
    profile.create(source="tool", id="goes")
    rules = (Rule(source="cron", age=None), Rule(who="automation", age=DAY))
    clock.advance(DAY)
    assert did(store.prune(Policy(rules=rules)).items) == [("goes", "closed")]


def test_s36_2_what_never_goes(store: clew.Store, profile: clew.Profile, clock: FakeClock) -> None:
    """Pinned, archived, running and waiting ones."""
    pinned, archived, running, waiting = (profile.create(source="cron") for _ in range(4))
    pinned.pin()
    archived.archive()
    begun(running.begin_turn([clew.user("go")], holder=HOLDER))
    turn = begun(waiting.begin_turn([clew.user("go")], holder=HOLDER))
    waiting.append([clew.user("waits")])
    turn.finish([clew.assistant("done")])
    clock.advance(1000 * DAY)
    everything = Policy(rules=(Rule(age=DAY),))
    assert store.prune().items == () == store.prune(everything).items


def test_times_that_lie_ahead_are_not_long_ago(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    """A clock that went back: nothing goes sooner, and things go when their time has come."""
    conv = profile.create(source="cron")
    talk(conv, "a")
    clock.advance(-50 * DAY)
    assert store.prune().items == ()
    clock.advance(140 * DAY)
    assert store.prune().closed == 1
    clock.advance(-50 * DAY)
    assert store.prune().items == ()
    clock.advance(140 * DAY)
    assert store.prune().binned == 1
    clock.advance(-10 * DAY)
    assert store.prune().items == ()
    clock.advance(40 * DAY)
    assert store.prune().deleted == 1


@pytest.mark.parametrize("age", [0, -1, -DAY, 1.5, True, "90d", 1 << 62])
def test_s36_10_a_window_that_is_none_is_refused(age: Any) -> None:
    """S36.10."""
    with pytest.raises(clew.InputError):
        Rule(age=age)
    with pytest.raises(clew.InputError):
        Policy(bin=age)


# ---------------------------------------------------------------- the daily run


@pytest.mark.requires("engine")
def test_s36_1_at_most_once_a_day_and_the_first_run_only_looks(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    """S36.1."""
    conv = profile.create(source="cron")
    clock.advance(90 * DAY)
    first = store.maintain()
    assert first is not None
    assert first.dry_run
    assert first.held
    assert first.closed == 1
    assert not conv.info().ended
    clock.advance(DAY - 1)
    assert store.maintain() is None
    clock.advance(1)
    second = store.maintain()
    assert second is not None
    assert (second.closed, second.held) == (1, None)
    assert conv.info().ended


@pytest.mark.requires("engine")
def test_a_clock_that_jumps_forward_empties_nothing(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    conv = profile.create(source="cron")
    talk(conv, "a")
    conv.end("finished")
    profile.bin(profile.create(id="binned").id)
    for _ in range(3):
        store.maintain()
        clock.advance(DAY)
    clock.advance(10 * 365 * DAY)
    jumped = store.maintain()
    assert jumped is not None
    assert jumped.held
    assert (jumped.binned, jumped.deleted) == (1, 1)
    assert (len(profile.binned()), conv.info().ended) == (1, True)
    clock.advance(-10 * 365 * DAY)  # put right
    right = store.maintain()
    assert right is not None
    assert right.items == ()
    clock.advance(DAY)
    assert store.maintain() is not None


@pytest.mark.requires("engine")
def test_a_store_that_is_seldom_opened_is_pruned_too(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    conv = profile.create(source="cron")
    runs = []
    for _ in range(4):
        clock.advance(180 * DAY)
        run = store.maintain()
        assert run is not None
        runs.append((run.held is not None, run.closed))
    assert runs == [(True, 1), (False, 1), (True, 0), (False, 0)]
    assert [row.id for row in profile.binned()] == [conv.id]


@pytest.mark.requires("engine")
def test_what_is_taken_of_people_is_announced(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    conv = profile.create(source="telegram")
    cron = profile.create(source="cron")
    store.maintain(None)
    policy = Policy(rules=(Rule(age=30 * DAY),))

    def day(policy: Policy) -> list[tuple[str, str]]:
        clock.advance(DAY)
        run = store.maintain(policy)
        return [] if run is None else did(run.items)

    day(policy)
    clock.advance(30 * DAY)
    assert day(policy) == [(conv.id, "announced"), (cron.id, "closed")]
    assert store.announced(policy) == clock.now()
    other = Policy(rules=(Rule(age=29 * DAY),))
    assert (conv.id, "announced") in day(other)
    assert store.announced(policy) is None
    assert day(policy) == [(conv.id, "announced")]
    assert day(policy) == [(conv.id, "binned")]


@pytest.mark.requires("engine")
def test_s36_9_without_a_policy_nothing_goes(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    profile.create(source="cron")
    for _ in range(3):
        clock.advance(90 * DAY)
        assert store.maintain(None) is None
    assert len(profile.list().items) == 1


@pytest.mark.requires("engine")
def test_the_bytes_of_what_is_deleted(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    conv = profile.create()
    talk(conv, *"abc")
    profile.bin(conv.id)
    clock.advance(30 * DAY)
    told = store.prune(dry_run=True)
    assert told.bytes > 3
    assert told.deleted == 1
    assert store.prune().bytes == told.bytes
