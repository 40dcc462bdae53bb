"""Lists of conversations, their pages and filters; counts."""

from __future__ import annotations

import pytest
from talk import HOLDER, begun, talk

import clew
from clew import ListFilter, Workspace
from clew.domain.retention import Policy, Rule
from clew.testing.clock import FakeClock


def ids(page: clew.Page[clew.ConversationInfo]) -> list[str]:
    return [row.id for row in page.items]


def touch(profile: clew.Profile, clock: FakeClock, *names: str) -> None:
    """Create, or say something in, conversations, one after another."""
    for name in names:
        clock.advance(1)
        talk(profile.create(id=name), f"in {name}")


def test_the_newest_activity_comes_first(profile: clew.Profile, clock: FakeClock) -> None:
    touch(profile, clock, "a", "b", "c")
    assert ids(profile.list()) == ["c", "b", "a"]
    touch(profile, clock, "a")
    assert ids(profile.list()) == ["a", "c", "b"]


def test_b55_equal_times_have_one_order(profile: clew.Profile) -> None:
    for name in ("b", "c", "a"):
        talk(profile.create(id=name), "x")
    assert {tuple(ids(profile.list())) for _ in range(10)} == {("a", "c", "b")}


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_pages_of_a_list_join(profile: clew.Profile, clock: FakeClock, limit: int) -> None:
    touch(profile, clock, *"abcdefg")
    for name in "be":
        profile.open(name).pin()
    for first, expected in ((False, "gfedcba"), (True, "ebgfdca")):
        found, cursor = [], None
        while True:
            page = profile.list(limit=limit, cursor=cursor, pinned_first=first)
            found += ids(page)
            if (cursor := page.next) is None:
                break
        assert found == list(expected)


def test_a_new_conversation_shifts_no_page(profile: clew.Profile, clock: FakeClock) -> None:
    touch(profile, clock, *"abcd")
    page = profile.list(limit=2)
    assert page.next is not None
    if_new = profile.list(limit=2, cursor=page.next)
    assert ids(page) + ids(if_new) == list("dcba")


@pytest.mark.requires("engine")
def test_a_page_goes_on_behind_its_last_row(profile: clew.Profile, clock: FakeClock) -> None:
    touch(profile, clock, *"abcd")
    page = profile.list(limit=2)
    touch(profile, clock, "e")
    assert ids(profile.list(limit=2, cursor=page.next)) == ["b", "a"]


@pytest.mark.parametrize("cursor", ["x", "!!", "WyJhIl0", "\ud800"])
def test_a_cursor_of_nothing_is_refused(profile: clew.Profile, cursor: str) -> None:
    with pytest.raises(clew.InvalidCursor):
        profile.list(cursor=cursor)


@pytest.mark.parametrize(
    ("want", "expected"),
    [
        (ListFilter(), "cba"),
        (ListFilter(source="tg"), "b"),
        (ListFilter(source="nobody"), ""),
        (ListFilter(project="/repo"), "a"),
        (ListFilter(project="/plain"), "b"),
        (ListFilter(git_branch="main"), "a"),
        (ListFilter(model="m2"), "c"),
        (ListFilter(title="TRIP"), "b"),
        (ListFilter(title="100%"), "c"),
        (ListFilter(title="Äpf"), "a"),
        (ListFilter(title="_"), ""),
        (ListFilter(pinned=True), "b"),
        (ListFilter(pinned=False), "ca"),
        (ListFilter(archived=True), "d"),
        (ListFilter(ended=True), "c"),
        (ListFilter(ended=False), "ba"),
        (ListFilter(automation=True), "c"),
        (ListFilter(source="cli", pinned=False, ended=False, project="/repo"), "a"),
    ],
    ids=repr,
)
def test_a_filter_shows_what_it_says(
    profile: clew.Profile, clock: FakeClock, want: ListFilter, expected: str
) -> None:
    touch_with = {
        "a": {"source": "cli", "workspace": Workspace("/repo/sub", "/repo", "main"),
              "title": "Äpfel"},
        "b": {"source": "tg", "workspace": Workspace("/plain"), "title": "Plan a trip"},
        "c": {"source": "api", "model": "m2", "automation": True, "title": "100% sure"},
        "d": {"source": "cli", "archived": True},
    }  # fmt: skip
    for name, fields in touch_with.items():
        clock.advance(1)
        profile.create(id=name, **fields)
    profile.open("b").pin()
    profile.open("c").end()
    assert ids(profile.list(want)) == list(expected)
    assert ids(profile.list(want, pinned_first=True)) == sorted(
        expected, key=lambda name: (name != "b", -ord(name))
    )


def test_a_list_of_a_time(profile: clew.Profile, clock: FakeClock) -> None:
    times = []
    for name in "abc":
        touch(profile, clock, name)
        times.append(clock.now())
    assert ids(profile.list(ListFilter(since=times[1]))) == ["c", "b"]
    assert ids(profile.list(ListFilter(until=times[1]))) == ["a"]
    assert ids(profile.list(ListFilter(since=times[1], until=times[1] + 1), limit=1)) == ["b"]


def test_b49_the_list_is_of_every_source(profile: clew.Profile) -> None:
    for source in ("api", "cli", "tg"):
        profile.create(id=source, source=source)
    assert set(ids(profile.list())) == {"api", "cli", "tg"}


def test_lists_stay_inside_their_profile(store: clew.Store) -> None:
    store.profile("p").create(id="p1")
    store.profile("q").create(id="q1")
    assert ids(store.profile("p").list()) == ["p1"]
    assert store.profiles() == (("p", 1), ("q", 1))


@pytest.mark.requires("stats")
def test_the_administrative_list_is_of_every_profile(store: clew.Store) -> None:
    store.profile("p").create(id="p1")
    store.profile("q").create(id="q1")
    assert set(ids(store.list_all())) == {"p1", "q1"}
    first = store.list_all(limit=1)
    assert ids(store.list_all(limit=1, cursor=first.next)) != ids(first)


def test_b74_a_row_tells_all_that_a_list_shows(profile: clew.Profile) -> None:
    conv = profile.create(source="cli", title="Mine")
    talk(conv, "question", "answer")
    (row,) = profile.list().items
    assert row == conv.info().summary()
    assert (row.title, row.preview, row.message_count) == ("Mine", "answer", 2)


def test_b98_an_import_keeps_dates_ids_order_and_titles(profile: clew.Profile) -> None:
    conv = profile.create(id="old", title="Old", created_at=5, imported_at=1000, source="chatgpt")
    conv.append([clew.user("q", created_at=6), clew.assistant("a", created_at=7)])
    info = conv.info()
    assert (info.created_at, info.active_at, info.imported_at) == (5, 7, 1000)
    assert [(m.text, m.created_at) for m in conv.messages()] == [("q", 6), ("a", 7)]
    assert info.title == "Old"


@pytest.mark.requires("stats")
def test_counts(profile: clew.Profile) -> None:
    one, two = profile.create(source="cli"), profile.create(source="tg")
    profile.create(source="tg", archived=True).pin()
    talk(one, "a", "b", "c")
    one.cut(one.message(3).uid)
    branch = one.branch()
    talk(branch, "x")
    begun(two.begin_turn([clew.user("go")], holder=HOLDER))
    two.append([clew.user("waits")])
    one.end()
    stats = profile.stats()
    assert (stats.conversations, stats.messages, stats.archived, stats.pinned) == (4, 5, 1, 1)
    assert (stats.ended, stats.open_turns, stats.waiting) == (1, 1, 1)
    assert stats.sources == (("cli", 2, 4), ("tg", 2, 1))


@pytest.mark.requires("prune")
def test_b100_a_prune_offers_nothing_that_is_protected(
    store: clew.Store, profile: clew.Profile, clock: FakeClock
) -> None:
    names = ("ended", "pinned", "open", "running", "waiting", "imported")
    for name in names:
        imported = clock.now() if name == "imported" else None
        talk(profile.create(id=name, imported_at=imported), "a")
    turn = begun(profile.open("waiting").begin_turn([clew.user("go")], holder=HOLDER))
    profile.open("waiting").append([clew.user("more")])
    turn.finish()
    profile.open("pinned").pin()
    for name in names[:1] + names[1:2] + names[4:]:
        profile.open(name).end()
    begun(profile.open("running").begin_turn([clew.user("go")], holder=HOLDER))
    clock.advance(100)
    fresh = profile.create(id="fresh")
    fresh.end()
    older = Policy(rules=(Rule(who="imports", age=None), Rule(age=50, ended=True)))
    assert [item.id for item in store.prune(older, dry_run=True).items] == ["ended"]
    clock.advance(50)
    assert {item.id for item in store.prune(older, dry_run=True).items} == {"ended", "fresh"}
