"""Several hosts, one store: two stores are open on one database, and neither knows the other.

What a lock of a process would hide is decided by the engine here: who is first, what is seen, what
is stale. Where a race is meant the threads begin together, and the test says what holds whoever
wins.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest
from raw import Raw
from talk import begun, calls, compact, proposal, result, seqs, summary, talk, texts
from twins import OBSERVED

import clew
from apart import apart
from clew.store import dictionary

pytestmark = pytest.mark.requires("engine")

ROUNDS = 8
"""How often a race is run."""


class Hosts(NamedTuple):
    """Two stores at one place."""

    one: clew.Store
    other: clew.Store


@pytest.fixture
def hosts(place) -> Iterator[Hosts]:
    with apart(place) as one, apart(place) as other:
        yield Hosts(one, other)
        assert one.verify() == []


@pytest.fixture
def profiles(hosts: Hosts) -> tuple[clew.Profile, clew.Profile]:
    return hosts.one.profile("me"), hosts.other.profile("me")


@pytest.fixture
def pair(profiles) -> tuple[clew.Conversation, clew.Conversation]:
    """One conversation, opened on both."""
    conv = profiles[0].create()
    return conv, profiles[1].open(conv.id)


def race(*works: Callable[[], Any]) -> list[Any]:
    """Run them at once: what each answers, or why clew refuses it. Other errors are raised."""
    gate, answers = threading.Barrier(len(works)), [None] * len(works)
    failed: list[Exception] = []

    def run(at: int) -> None:
        try:
            gate.wait()
            answers[at] = works[at]()
        except (clew.Refused, clew.NotFound) as error:
            answers[at] = error
        except Exception as error:  # noqa: BLE001 - raised below
            failed.append(error)

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise ExceptionGroup("a race", failed)
    return answers


def same(one: clew.Conversation, other: clew.Conversation) -> None:
    """Both hosts show the same."""
    for name, read in OBSERVED:
        assert _plain(read(one)) == _plain(read(other)), name


def _plain(seen: Any) -> Any:
    """Handles, of children, have no equality."""
    return [getattr(item, "id", item) for item in seen] if isinstance(seen, list | tuple) else seen


# ---------------------------------------------------------------- the log


def test_appends_of_both_interleave_without_gaps(pair) -> None:
    def write(name: int) -> Callable[[], None]:
        def work() -> None:
            for n in range(25):
                pair[name % 2].append([clew.user(f"{name} {n}"), clew.assistant(f"{name} {n}")])

        return work

    race(*map(write, range(4)))
    for conv in pair:
        messages = list(conv.messages())
        assert seqs(messages) == list(range(1, 201))
        for name in range(4):
            mine = [m.text for m in messages if m.text.startswith(f"{name} ")]
            assert mine == [f"{name} {n // 2}" for n in range(50)]
    same(*pair)


def test_a_key_written_by_one_is_found_by_the_other(pair) -> None:
    one, other = pair
    draft = clew.user("a", key="k")
    first = one.append([draft])
    again = other.append([draft])
    assert (first.new, again.new) == (1, 0)
    assert again.uids == first.uids
    with pytest.raises(clew.KeyReused):
        other.append([clew.user("b", key="k")])
    assert other.message("k").text == "a"


def test_a_key_that_both_write_at_once_is_one_message(pair) -> None:
    for n in range(ROUNDS):
        draft = clew.user(str(n), key=str(n))
        done = race(*(partial(conv.append, [draft]) for conv in pair))
        assert sorted(each.new for each in done) == [0, 1]
        assert done[0].uids == done[1].uids
    assert texts(pair[0]) == [str(n) for n in range(ROUNDS)]


def test_one_content_wins_where_two_say_something_else_under_one_key(pair) -> None:
    one, other = pair
    for n in range(ROUNDS):
        mine, theirs = clew.user("mine", key=str(n)), clew.user("theirs", key=str(n))
        done = race(partial(one.append, [mine]), partial(other.append, [theirs]))
        assert sorted(type(each).__name__ for each in done) == ["Appended", "KeyReused"]
    assert one.info().head == ROUNDS


def test_a_head_that_the_other_has_moved_is_stale(pair) -> None:
    one, other = pair
    talk(one, "a", "b")
    assert other.append([clew.user("c")], head=2).head == 3
    with pytest.raises(clew.Stale):
        one.append([clew.user("d")], head=2)
    with pytest.raises(clew.Stale):
        one.cut(one.message(2).uid, head=2)


def test_of_two_appends_at_one_head_one_is_stale(pair) -> None:
    for head in range(ROUNDS):
        done = race(*(partial(conv.append, [clew.user("x")], head=head) for conv in pair))
        assert sorted(type(each).__name__ for each in done) == ["Appended", "Stale"]


def test_one_picture_and_one_prompt_that_both_bring_are_kept_once(
    profiles, pair, place, raw: Raw
) -> None:
    for n in range(ROUNDS):
        picture = clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"png %d" % n),))
        race(*(partial(conv.append, [picture]) for conv in pair))
        prompt = {"prompt": f"You are {n}", "toolset": ({"name": f"t{n}"},)}
        race(*(partial(profile.create, **prompt) for profile in profiles))
    with raw.connect(place) as run:
        for table in ("blob", "prompt", "toolset"):
            assert run(f"SELECT count(*) FROM {table}") == [(ROUNDS,)], table


# ---------------------------------------------------------------- cuts and compactions


def test_what_one_cuts_off_is_stale_for_the_other(pair) -> None:
    one, other = pair
    talk(one, *"abcd")
    seen = other.info()
    one.cut(one.message(3).uid)
    assert texts(other) == ["a", "b"]
    with pytest.raises(clew.Stale):
        other.cut(other.message(2).uid, view=seen.view)
    with pytest.raises(clew.Stale):
        other.edit(other.message(2).uid, clew.user("B"), view=seen.view)
    other.undo_cut(view=one.info().view)
    assert texts(one) == [*"abcd"]


def test_of_two_cuts_of_one_view_one_is_stale(pair) -> None:
    talk(pair[0], *"abcdefghijklmnop")
    for n in range(ROUNDS):
        info = pair[0].info()
        uid = pair[0].message(info.head - n).uid
        done = race(*(partial(conv.cut, uid, view=info.view) for conv in pair))
        assert sorted(type(each).__name__ for each in done) == ["CutOutcome", "Stale"]


def test_an_attempt_of_one_is_cancelled_by_the_other(pair) -> None:
    one, other = pair
    talk(one, *"abcd")
    number = one.open_attempt().number
    other.cancel_attempt(number)
    with pytest.raises(clew.Cancelled):
        one.commit_attempt(number, proposal(2))
    assert [a.state for a in one.attempts()] == ["cancelled"]


def test_an_attempt_is_overtaken_by_what_the_other_did(pair) -> None:
    one, other = pair
    talk(one, *"abcd")
    slow = one.open_attempt().number
    compact(other, 2)
    with pytest.raises(clew.Overtaken):
        one.commit_attempt(slow, proposal(3))
    slow = one.open_attempt().number
    other.cut(other.message(3).uid)
    with pytest.raises(clew.Cancelled):
        one.commit_attempt(slow, proposal(3))
    same(one, other)


def test_of_two_compactions_at_once_one_counts(pair) -> None:
    talk(pair[0], *"abcd")
    for _ in range(ROUNDS):
        numbers = [conv.open_attempt().number for conv in pair]
        done = race(*(
            partial(conv.commit_attempt, number, proposal(2, summary(str(number))))
            for conv, number in zip(pair, numbers, strict=True)
        ))  # fmt: skip
        assert sorted(type(each).__name__ for each in done) == ["Compaction", "Overtaken"]
    assert len(pair[0].compactions()) == ROUNDS


# ---------------------------------------------------------------- turns


def test_the_right_to_run_is_seen_by_the_other(pair) -> None:
    one, other = pair
    turn = begun(one.begin_turn([clew.user("go")]))
    assert other.append([clew.user("waits")]).queued
    assert isinstance(other.begin_turn([clew.user("too")]), clew.TurnQueued)
    with pytest.raises(clew.TurnOpen):
        other.resume_turn()
    assert turn.record([calls("c1")]).taken == ()
    assert turn.record([result("c1")], take_inbox=True).taken == (1, 2)
    turn.finish([clew.assistant("done")])
    assert texts(other) == ["go", "call c1", "result c1", "waits", "too", "done"]
    begun(other.begin_turn([clew.user("on")])).finish()


def test_of_two_turns_at_once_one_begins(pair) -> None:
    for n in range(ROUNDS):
        done = race(*(partial(conv.begin_turn, [clew.user("go")]) for conv in pair))
        assert sorted(type(each).__name__ for each in done) == ["TurnHandle", "TurnQueued"]
        (turn,) = [each for each in done if isinstance(each, clew.TurnHandle)]
        assert turn.record(take_inbox=True).taken == (n + 1,)
        turn.finish()
    assert [t.state for t in pair[0].turns()] == ["done"] * ROUNDS
    same(*pair)


def test_a_turn_ends_once_whoever_interrupts(pair) -> None:
    one, other = pair
    for _ in range(ROUNDS):
        turn = begun(one.begin_turn([clew.user("go")]))
        done = race(partial(turn.finish, [clew.assistant("done")]), other.interrupt_turn)
        finished = isinstance(done[0], clew.TurnEnded)
        assert done[1] is not finished
        assert finished or isinstance(done[0], clew.RightLost)
        with pytest.raises(clew.RightLost):
            turn.record([clew.assistant("late")])
    assert not one.info().waiting


# ---------------------------------------------------------------- keys, ids and lists


def test_one_id_and_one_key_lead_both_to_one_conversation(profiles) -> None:
    for n in range(ROUNDS):
        made = race(*(partial(profile.create, id=f"c{n}") for profile in profiles))
        assert {conv.id for conv in made} == {f"c{n}"}
        made = race(*(partial(profile.conversation, f"key {n}") for profile in profiles))
        assert len({conv.id for conv in made}) == 1
        talk(made[0], "a")
        talk(made[1], "b")
        assert texts(profiles[0].conversation(f"key {n}")) == ["a", "b"]
    assert profiles[1].stats().conversations == 2 * ROUNDS


def test_a_reset_by_one_is_seen_by_the_other(profiles) -> None:
    one, other = profiles
    old = one.conversation("key")
    theirs = other.conversation("key")
    outcome = one.reset("key")
    assert outcome.previous == old.id
    with pytest.raises(clew.Ended):
        talk(theirs, "late")
    assert other.conversation("key").id == outcome.conversation


def test_resets_at_once_follow_each_other(profiles) -> None:
    first = profiles[0].conversation("key").id
    steps: dict[str, str] = {}
    for _ in range(ROUNDS):
        done = race(*(partial(profile.reset, "key") for profile in profiles))
        steps |= {each.previous: each.conversation for each in done}
    assert len(steps) == 2 * ROUNDS
    at = first
    for _ in range(2 * ROUNDS):
        at = steps[at]
    assert profiles[1].conversation("key").id == at


def test_a_delivery_that_reaches_both_is_received_once(profiles) -> None:
    for n in range(ROUNDS):
        delivery = {"source": "tg", "account": "bot", "key": f"update {n}"}
        receives = [
            partial(p.receive, f"chat {n}", [clew.user("hi")], **delivery) for p in profiles
        ]
        done = race(*receives)
        assert sorted(each.again for each in done) == [False, True]
        assert done[0].conversation == done[1].conversation
        assert texts(profiles[0].open(done[0].conversation)) == ["hi"]


def test_one_lists_what_the_other_made(profiles) -> None:
    one, other = profiles
    made = [one.create(id=f"c{n}", title=f"title {n}") for n in range(5)]
    page = other.list(limit=2)
    following = one.list(limit=3, cursor=page.next)
    found = [row.id for row in (*page.items, *following.items)]
    assert sorted(found) == [conv.id for conv in made]
    other.open("c3").set_title("another")
    other.open("c4").archive()
    assert made[3].info().title == "another"
    assert [row.id for row in one.list(clew.ListFilter(archived=True)).items] == ["c4"]
    assert one.resolve("c3").id == "c3"
    begun(made[0].begin_turn([clew.user("go")]))
    assert [conv.id for conv in other.unfinished()] == ["c0"]


# ---------------------------------------------------------------- deletion


def test_what_one_deletes_is_not_found_by_the_other(profiles, pair) -> None:
    one, other = pair
    talk(one, "a", "b")
    turn = begun(other.begin_turn([clew.user("go")]))
    branch = other.branch(other.message(2).uid)
    profiles[0].delete(one.id)
    for use in (
        other.info,
        lambda: other.append([clew.user("c")]),
        lambda: list(other.messages()),
        lambda: profiles[1].open(one.id),
        lambda: other.cut("f" * 32),
        lambda: other.open_attempt(),
        lambda: other.branch(),
    ):
        with pytest.raises(clew.NotFound):
            use()
    with pytest.raises((clew.NotFound, clew.RightLost)):
        turn.record([clew.assistant("late")])
    assert texts(branch) == ["a", "b"]


def test_deleted_and_used_at_once_it_is_whole_or_gone(profiles) -> None:
    """A branch that was made has all that it shows; a message that was taken was there."""
    for _ in range(ROUNDS):
        conv = profiles[0].create()
        talk(conv, *"abcdef")
        theirs = profiles[1].open(conv.id)
        done = race(
            partial(profiles[0].delete, conv.id), theirs.branch,
            partial(theirs.append, [clew.user("late")]), partial(profiles[1].delete, conv.id),
        )  # fmt: skip
        assert done[0] is None or done[3] is None
        if isinstance(done[1], clew.Conversation):
            assert texts(done[1])[:6] == [*"abcdef"]
        with pytest.raises(clew.NotFound):
            profiles[1].open(conv.id)


@pytest.mark.requires("row locks")
def test_a_deletion_takes_its_locks_in_the_order_of_others(profiles, place, raw: Raw) -> None:
    """The binding before the conversation: else it and a delivery would wait for each other."""
    conv = profiles[0].conversation("key")
    deletion = threading.Thread(target=lambda: profiles[1].delete(conv.id))
    with raw.connect(place) as run, raw.connect(place) as look:
        run("BEGIN; SELECT 1 FROM binding FOR NO KEY UPDATE")
        deletion.start()
        while look("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == []:
            assert deletion.is_alive()
        look("SELECT 1 FROM conversation FOR NO KEY UPDATE NOWAIT")
        run("COMMIT")
        deletion.join()
    with pytest.raises(clew.NotFound):
        conv.info()


# ---------------------------------------------------------------- following and search


def test_one_follows_what_the_other_does(profiles) -> None:
    one, other = profiles
    mark = one.mark()
    conv = other.create()
    talk(conv, "a", "b")
    conv.pin()
    mark, found = one.changes(mark)
    assert sorted(change.kind for change in found) == ["appended", "created", "flagged"]
    assert {change.conversation for change in found} == {conv.id}
    other.delete(conv.id)
    assert {change.kind for change in one.changes(mark)[1]} == {"deleted"}


def test_a_follower_misses_nothing_and_hears_nothing_twice(hosts, profiles, place) -> None:
    """Two write to conversations of their own, so that commits overtake each other."""
    total = 40
    convs = [profile.create() for profile in profiles]
    heard: dict[str, list[int]] = {conv.id: [] for conv in convs}
    with clew.open(place) as third:
        profile = third.profile("me")
        changes = profile.follow(
            since=profile.mark(), poll=0.01,
            until=lambda: all(found[-1:] == [total] for found in heard.values()),
        )  # fmt: skip

        def write(conv: clew.Conversation) -> None:
            for n in range(total):
                conv.append([clew.user(str(n))])

        threads = [threading.Thread(target=write, args=(conv,)) for conv in convs]
        for thread in threads:
            thread.start()
        for change in changes:
            heard[change.conversation] += range(change.first_seq or 0, (change.last_seq or 0) + 1)
        for thread in threads:
            thread.join()
    assert set(map(tuple, heard.values())) == {tuple(range(1, total + 1))}


def test_one_finds_what_the_other_wrote(profiles, pair) -> None:
    talk(pair[0], "a needle in the hay")
    (hit,) = profiles[1].search("needle").hits
    assert hit.conversation == pair[0].id
    profiles[1].delete(pair[0].id)
    assert profiles[0].search("needle").hits == ()


# ---------------------------------------------------------------- housekeeping


def test_a_job_is_one_hosts_at_a_time(hosts: Hosts) -> None:
    for fence in range(1, ROUNDS + 1):
        done = race(*(partial(host.claim_job, "prune") for host in [*hosts, *hosts]))
        (right,) = [each for each in done if each is not None]
        assert right.fence == fence
        assert [job.holder for job in hosts.other.jobs()] == [right.holder]
        assert hosts.other.release_job(right)
        with pytest.raises(clew.RightLost):
            hosts.one.renew_job(right)


def test_a_dictionary_is_trained_once_and_learned_by_all(
    hosts: Hosts, pair, place, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both train at once, with different samples; a third that knew of none reads and writes."""
    monkeypatch.setattr(dictionary, "ENOUGH", 300)
    said = [f"{n} " + " ".join(f"word{n * k % 97}" for k in range(60)) for n in range(302)]
    one, other = pair
    with clew.open(place) as third:
        late = third.profile("me").open(one.id)
        late.append([clew.user(said[300])])  # from now on it believes that there is none
        one.append([clew.user(text) for text in said[:300]])
        race(*(partial(dictionary.train_if_due, h._db.backend, h._db.kit) for h in hosts))
        assert {host._db.kit.codec.current for host in hosts} == {1}
        for conv in pair:
            conv.append([clew.user(said[300])])
        assert texts(late)[-2:] == [said[300]] * 2
        late.append([clew.user(said[301])])
        assert texts(one)[-1] == texts(other)[-1] == said[301]
    with raw.connect(place) as run:
        assert run("SELECT version FROM dictionary") == [(1,)]
        rows = run("SELECT parts FROM message ORDER BY seq")
    assert [bytes(parts)[:2] == b"\x02\x01" for (parts,) in rows[-3:]] == [True] * 3
    assert not any(bytes(parts)[:2] == b"\x02\x01" for (parts,) in rows[:-3])


def test_both_maintain_at_once(hosts: Hosts, pair) -> None:
    talk(pair[0], "a", "b")
    race(*(host.maintain for host in [*hosts, *hosts]))
    jobs = {job.name: job.holder for job in hosts.one.jobs()}
    assert "maintain" in jobs
    assert "prune/" in jobs
    assert set(jobs.values()) == {None}


# ---------------------------------------------------------------- everything at once

PICTURE = clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"png"),))
DEEDS: tuple[Callable[[clew.Store, clew.Profile, random.Random], object], ...] = (
    lambda s, p, r: _any(p, r).append([clew.user("a"), clew.assistant("b")]),
    lambda s, p, r: _any(p, r).append([clew.user("k", key=str(r.randrange(3)))]),
    lambda s, p, r: _any(p, r).append([PICTURE]),
    lambda s, p, r: _any(p, r).pop(),
    lambda s, p, r: _any(p, r).undo_cut(),
    lambda s, p, r: _any(p, r).branch(),
    lambda s, p, r: _any(p, r).edit(_any(p, r).message(1).uid, clew.user("other")),
    lambda s, p, r: compact(_any(p, r), 1),
    lambda s, p, r: _turn(_any(p, r)),
    lambda s, p, r: _any(p, r).interrupt_turn(),
    lambda s, p, r: p.receive(
        f"r{r.randrange(2)}", [clew.user("u")], source="tg", account="b", key=str(r.randrange(9))
    ),
    lambda s, p, r: p.reset(f"r{r.randrange(2)}", source="tg"),
    lambda s, p, r: p.conversation(f"r{r.randrange(2)}", source="tg").end(),
    lambda s, p, r: _any(p, r).claim_alias("tool", f"f{r.randrange(3)}"),
    lambda s, p, r: _any(p, r).set_prompt(f"prompt {r.randrange(2)}"),
    lambda s, p, r: p.delete(_any(p, r).id),
    lambda s, p, r: p.bin(_any(p, r).id),
    lambda s, p, r: [p.unbin(one.id) for one in p.binned()],
    lambda s, p, r: r.randrange(4) or p.empty_bin(),
    lambda s, p, r: p.search("other"),
    lambda s, p, r: _check(s),
)


def _turn(conv: clew.Conversation) -> None:
    turn = conv.begin_turn([clew.user("go")])
    if isinstance(turn, clew.TurnHandle):
        turn.record([calls("c")])
        turn.finish([result("c"), clew.assistant("done")])


def _check(store: clew.Store) -> None:
    assert store.verify() == []


def _any(profile: clew.Profile, chance: random.Random) -> clew.Conversation:
    rows = profile.list(limit=5).items
    return profile.open(chance.choice(rows).id) if rows else profile.create()


@pytest.mark.parametrize("seed", range(2))
def test_hosts_that_do_all_sorts_of_things_only_refuse(hosts: Hosts, seed: int) -> None:
    """No two wait for each other for ever and nothing fails; all the time every invariant holds."""

    def work(number: int) -> Callable[[], None]:
        def run() -> None:
            chance = random.Random(10 * seed + number)
            store = hosts[number % 2]
            for _ in range(30):
                try:
                    chance.choice(DEEDS)(store, store.profile("me"), chance)
                except (clew.Refused, clew.NotFound, clew.InputError):
                    pass  # another was faster

        return run

    race(*map(work, range(4)))
    for row in hosts.one.profile("me").list(limit=50).items:
        same(*(host.profile("me").open(row.id) for host in hosts))
