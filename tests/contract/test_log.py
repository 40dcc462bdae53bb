"""The log: appending, order, pages, single messages, snapshots."""

from __future__ import annotations

import threading

import pytest
from talk import calls, compact, result, seqs, talk, texts

import clew
from clew import Draft, Role, Text


def test_a_batch_gets_the_next_seqs_in_its_order(conv: clew.Conversation) -> None:
    first = conv.append([clew.user("a"), clew.assistant("b")])
    second = conv.append([clew.user("c")])
    assert (first.seqs, first.head, first.new, first.queued) == ((1, 2), 2, 2, False)
    assert (second.seqs, second.head, second.new) == ((3,), 3, 1)
    assert texts(conv) == ["a", "b", "c"]
    assert conv.info().message_count == 3


def test_a_batch_is_all_or_nothing(conv: clew.Conversation) -> None:
    bad = Draft(role=Role.USER, parts=(Text("b"),), replaces=9)
    with pytest.raises(clew.InputError):
        conv.append([clew.user("a"), bad])
    assert conv.info().head == 0
    assert texts(conv) == []


def test_an_append_onto_a_head_that_moved_is_stale(conv: clew.Conversation) -> None:
    talk(conv, "a")
    with pytest.raises(clew.Stale) as refused:
        conv.append([clew.user("b")], head=0)
    assert (refused.value.what, refused.value.expected, refused.value.actual) == ("head", 0, 1)
    assert conv.append([clew.user("b")], head=1).seqs == (2,)


def test_an_empty_batch_and_one_that_is_too_large_are_refused(conv: clew.Conversation) -> None:
    with pytest.raises(clew.InputError):
        conv.append([])
    with pytest.raises(clew.TooLarge):
        conv.append([clew.user("x")] * 1001)


def test_every_field_of_a_message_comes_back(conv: clew.Conversation) -> None:
    draft = Draft(
        role=Role.DEVELOPER, parts=(Text("a"), Text("b")), key="k", author="Ada",
        api_group="group", tokens=7, meta={"a": [1, {"b": None}]}, created_at=12,
    )  # fmt: skip
    done = conv.append([draft])
    message = conv.message("k")
    assert (message.seq, message.uid, message.role) == (1, done.uids[0], Role.DEVELOPER)
    assert (message.parts, message.text) == (draft.parts, "a\nb")
    assert (message.key, message.author, message.api_group) == ("k", "Ada", "group")
    assert (message.tokens, message.meta, message.created_at) == (7, draft.meta, 12)
    assert (message.turn, message.replaces) == (None, None)


def test_a_message_is_found_by_seq_uid_and_key(conv: clew.Conversation) -> None:
    """S01.4."""
    (uid,) = conv.append([clew.user("a", key="k")]).uids
    dashed = f"{uid[:8]}-{uid[8:12]}-{uid[12:16]}-{uid[16:20]}-{uid[20:]}"
    for name in (1, uid, dashed, uid.upper(), "k"):
        assert conv.message(name).text == "a"
    for name in (0, 2, "nobody", "0" * 32):
        with pytest.raises(clew.NotFound):
            conv.message(name)


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_pages_join_to_the_whole_log(conv: clew.Conversation, order, limit: int) -> None:
    talk(conv, *"abcdefg")
    conv.cut(conv.message(3).uid)
    talk(conv, *"hijkl")
    for hidden in (False, True):
        found, cursor = [], None
        while True:
            page = conv.log(limit=limit, cursor=cursor, order=order, hidden=hidden)
            assert len(page.items) <= limit
            found += seqs(page.items)
            if (cursor := page.next) is None:
                break
        expected = list(range(1, 13)) if hidden else [1, 2, *range(8, 13)]
        assert found == (expected if order == "oldest" else expected[::-1])


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("hidden", [False, True])
def test_a_stretch_of_the_log_is_read_alone(conv: clew.Conversation, order, hidden: bool) -> None:
    """Pages of it join to it, from either end; a message counts where it stands."""
    talk(conv, *"abcdefgh")
    conv.cut(conv.message(7).uid)
    talk(conv, *"ij")
    conv.append([clew.user("C", replaces=3)])
    whole = list(conv.messages(hidden=hidden))
    for first, last in ((1, None), (3, 10), (4, 8), (7, 8), (9, 3), (11, 99), (-5, 2), (40, None)):
        end = 1 << 40 if last is None else last
        expected = [m for m in whole if first <= (m.seq if hidden else m.replaces or m.seq) <= end]
        assert list(conv.messages(hidden=hidden, first=first, last=last)) == expected
        found, cursor = [], None
        while True:
            page = conv.log(
                limit=2, cursor=cursor, order=order, hidden=hidden, first=first, last=last
            )
            found += page.items
            if (cursor := page.next) is None:
                break
        assert found == (expected if order == "oldest" else expected[::-1])


def test_a_page_neither_shifts_nor_repeats_when_more_is_appended(conv: clew.Conversation) -> None:
    talk(conv, *"abcd")
    page = conv.log(limit=2, order="newest")
    talk(conv, "e", "f")
    rest = conv.log(limit=10, order="newest", cursor=page.next)
    assert seqs(page.items) + seqs(rest.items) == [4, 3, 2, 1]


@pytest.mark.parametrize("cursor", ["n2", "2", "o", "ox", ""])
def test_a_cursor_of_another_query_is_refused(conv: clew.Conversation, cursor: str) -> None:
    talk(conv, "a", "b")
    with pytest.raises(clew.InvalidCursor):
        conv.log(cursor=cursor)


def test_page_sizes_have_bounds(conv: clew.Conversation) -> None:
    with pytest.raises(clew.InputError):
        conv.log(limit=0)
    with pytest.raises(clew.TooLarge):
        conv.log(limit=1001)


def test_b56_the_last_messages_are_read_alone(conv: clew.Conversation) -> None:
    """S31.1."""
    for start in range(0, 600, 100):
        conv.append([clew.user(str(n)) for n in range(start, start + 100)])
    page = conv.log(limit=20, order="newest")
    assert [m.text for m in page.items] == [str(n) for n in range(599, 579, -1)]


def test_a_replacement_stands_in_the_place_of_what_it_replaces(conv: clew.Conversation) -> None:
    """Imports only: the newer message is shown where the older one was, once."""
    talk(conv, "a", "b", "c")
    before = conv.info().view
    conv.append([clew.assistant("B", replaces=2)])
    conv.append([clew.assistant("BB", replaces=4)])
    assert texts(conv) == ["a", "BB", "c"]
    assert seqs(list(conv.messages(hidden=True))) == [1, 2, 3, 4, 5]
    info = conv.info()
    assert (info.message_count, info.view) == (3, before + 2)
    conv.cut(conv.message(5).uid)
    assert texts(conv) == ["a", "B", "c"]


def test_a_snapshot_keeps_what_was_there(conv: clew.Conversation) -> None:
    talk(conv, "a", "b", "c")
    early, now = conv.snapshot(2), conv.snapshot()
    conv.cut(conv.message(2).uid)
    talk(conv, "d")
    assert texts(early) == ["a", "b"]
    assert texts(now) == ["a", "b", "c"]
    assert texts(conv) == ["a", "d"]
    assert [m.text for m in now.context_inputs().messages] == ["a", "b", "c"]
    with pytest.raises(clew.NotFound):
        early.message(3)
    with pytest.raises(clew.InputError):
        conv.snapshot(5)


@pytest.mark.requires("frozen type")
def test_a_snapshot_has_no_method_that_writes(conv: clew.Conversation) -> None:
    writers = {
        name for name in dir(type(conv)) if not name.startswith("_")
    } - {name for name in dir(type(conv.snapshot())) if not name.startswith("_")}  # fmt: skip
    assert {"append", "add", "begin_turn", "cut", "edit", "commit_attempt", "end"} <= writers


def test_b10_saving_a_resumed_transcript_again_inserts_nothing(conv: clew.Conversation) -> None:
    """S10.2."""
    talk(conv, "a", "b", "c", "d")
    for turn in range(3):
        loaded = [message.draft() for message in conv.messages()]
        again = conv.append(loaded)
        assert (again.new, again.seqs) == (0, tuple(range(1, len(loaded) + 1)))
        talk(conv, f"more {turn}")
    assert conv.info().head == 7
    assert len({m.uid for m in conv.messages()}) == 7


def test_b13_two_writers_of_one_message_make_one_row(profile: clew.Profile) -> None:
    one = profile.create(id="c1")
    other = profile.open("c1")
    talk(one, "a", "b")
    draft = clew.user("hello", key="client-message-1")
    compact(one, 2)
    assert other.append([draft]).new == 1
    assert one.append([draft]).new == 0
    assert texts(profile.open("c1")) == ["a", "b", "hello"]


@pytest.mark.requires("engine")
def test_b67_threads_of_one_process_never_see_a_lock(store: clew.Store) -> None:
    """S51.1: 8 threads append, 4 read: each append is there once, nobody is refused."""
    conv = store.profile("me").create()
    failed: list[BaseException] = []

    def write(name: int) -> None:
        try:
            for n in range(15):
                conv.append([clew.user(f"{name}-{n}", key=f"{name}-{n}")])
        except BaseException as error:  # noqa: BLE001 - the test reports it
            failed.append(error)

    def read() -> None:
        try:
            for _ in range(15):
                page = conv.log(limit=100, order="newest")
                assert seqs(page.items) == sorted(seqs(page.items), reverse=True)
        except BaseException as error:  # noqa: BLE001 - the test reports it
            failed.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    threads += [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    said = [m.text for m in conv.messages()]
    assert sorted(said) == sorted(f"{name}-{n}" for name in range(8) for n in range(15))
    for name in range(8):  # each thread's messages in its own order
        mine = [text for text in said if text.startswith(f"{name}-")]
        assert mine == [f"{name}-{n}" for n in range(15)]


def test_b34_three_user_messages_stay_three(conv: clew.Conversation) -> None:
    for text in "ABC":
        conv.append([clew.user(text, key=f"update {text}")])
    assert [(m.role, m.text, m.key) for m in conv.messages()] == [
        (Role.USER, text, f"update {text}") for text in "ABC"
    ]


def test_b38_a_late_result_is_stored_by_identity_not_by_length(conv: clew.Conversation) -> None:
    """S21.2: Reconcile after a, again after b: nothing is frozen, doubled or out of order."""
    call, a, b = calls("a", "b"), result("a"), result("b")
    named = [
        clew.Draft(role=d.role, parts=d.parts, key=f"item-{n}") for n, d in enumerate((call, a, b))
    ]
    conv.append([clew.user("go")])
    conv.append(named[:2])
    conv.append(named)
    conv.append(named)
    assert texts(conv) == ["go", "call a", "result a", "result b"]


def test_b94_the_store_orders_whatever_clocks_say(conv: clew.Conversation) -> None:
    """The client's clock is ten minutes behind the server's."""
    server, client = 1_750_000_600_000_000, 1_750_000_000_000_000
    for n in range(2):
        conv.append([clew.user(f"q{n}", created_at=client + n)])
        conv.append([clew.assistant(f"a{n}", created_at=server + n)])
    assert texts(conv) == ["q0", "a0", "q1", "a1"]
    assert [m.text for m in conv.context_inputs().messages] == ["q0", "a0", "q1", "a1"]


def test_b95_equal_times_are_no_conflict(conv: clew.Conversation) -> None:
    """The clock stands still; versions are counters."""
    for n in range(5):
        conv.append([clew.user(str(n))], head=n)
    assert len({m.created_at for m in conv.messages()}) == 1
    assert texts(conv) == ["0", "1", "2", "3", "4"]


def test_b95_recent_means_the_newest(conv: clew.Conversation) -> None:
    talk(conv, *"abcdef")
    assert [m.text for m in conv.log(limit=2, order="newest").items] == ["f", "e"]
    assert [m.text for m in conv.log(limit=2).items] == ["a", "b"]


def test_the_list_shows_the_newest_text_of_person_or_model(conv: clew.Conversation) -> None:
    conv.append([clew.user("  first\n\nline "), calls("c1"), result("c1")])
    assert conv.info().preview == "first line"
    talk(conv, "question", "answer")
    assert conv.info().preview == "answer"
    conv.cut(conv.message(5).uid)
    assert conv.info().preview == "question"
    conv.undo_cut()
    assert conv.info().preview == "answer"
