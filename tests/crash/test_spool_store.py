"""Messages that a store in a file cannot take: durable, in order, exactly once, never dropped."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import clew
from clew.store.spool.place import spool_of
from clew.store.spool.record import FIRST, HEADER
from clew.store.spool.spool import Spool

WRITER = Path(__file__).with_name("spool_writer.py")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40


def said(conv: clew.Conversation) -> list[str]:
    """What the log says, in order."""
    return [clew_text(message) for message in conv.messages()]


def clew_text(message: clew.Message) -> str:
    return "".join(p.text for p in message.parts if isinstance(p, clew.Text)).split(" ")[0]


@pytest.fixture
def place(fast_dir: Path) -> Path:
    return fast_dir / "a.db"


@pytest.fixture
def conv(place: Path) -> Iterator[clew.Conversation]:
    """A conversation with one message, of a handle that is closed."""
    with clew.open(place) as store:
        made = store.profile("p").create()
        made.append([clew.user("first")])
    yield made
    with clew.open(place) as store:
        assert store.verify() == []


def spool_at(place: Path) -> Spool:
    return Spool(Path(f"{place}.spool"), 0)


@contextmanager
def again(place: Path, conv: clew.Conversation) -> Iterator[clew.Conversation]:
    """The same conversation, by a handle that is open."""
    with clew.open(place) as store:
        yield store.profile("p").open(conv.id)


def test_a_message_after_close_is_spooled_and_other_late_work_is_refused(
    place: Path, conv: clew.Conversation
) -> None:
    """S51.3 A late message lands; S40.8 nothing else is tried again or lost without a word."""
    late = conv.append([clew.user("late", key="k")])
    assert late.spooled is not None
    assert (late.seqs, late.new, len(late.uids)) == ((), 0, 1)
    for refused in (lambda: conv.set_title("t"), conv.end, conv.messages().__next__, conv.pop):
        with pytest.raises(clew.StoreClosed):
            refused()
    with clew.open(place) as store:
        health = store.health()
        assert (health.state, health.spooled) == ("spooling", 1)
        back = store.profile("p").open(conv.id)
        assert said(back) == ["first"]  # nobody has written yet
        assert back.append([clew.user("next")]).seqs == (3,)
        assert said(back) == ["first", "late", "next"]
        assert back.message(late.uids[0]).key == "k"
        assert store.health().state == "ok"


def test_the_file_is_there_while_a_writer_is_and_gone_after_a_clean_close(fast_dir: Path) -> None:
    place, file = fast_dir / "a.db", fast_dir / "a.db.spool"
    with clew.open(place) as store:
        assert not file.exists()  # who only reads makes none
        store.profile("p").create().append([clew.user("x")])
        status = file.stat()
        assert (status.st_size, status.st_mode & 0o777) == (16 << 20, 0o600)
        assert status.st_blocks * 512 >= 16 << 20  # reserved, not sparse
    assert not file.exists()
    with clew.open(place, spool=False) as store:
        store.profile("p").create().append([clew.user("x")])
        assert not file.exists()


def test_order_is_kept_across_handles_and_whole_batches(
    place: Path, conv: clew.Conversation
) -> None:
    """S40.1 First in, first out; a message behind one that waits waits, too."""
    conv.append([clew.user("a"), clew.assistant("b")])
    conv.append([clew.user("c")])
    with again(place, conv) as back:
        back.append([clew.user("d")])
        assert said(back) == ["first", "a", "b", "c", "d"]


def test_any_other_write_brings_in_what_waits(place: Path, conv: clew.Conversation) -> None:
    """S40.1 The next write tries the head first."""
    conv.append([clew.user("a")])
    with again(place, conv) as back:
        back.set_title("a title")
        assert said(back) == ["first", "a"]


def test_images_and_meta_come_back_whole(place: Path, conv: clew.Conversation) -> None:
    draft = clew.Draft(
        role=clew.Role.USER, parts=(clew.Text("see \udc80"), clew.Image(data=PNG)),
        author="ann", meta={"reply_to": "r"},
    )  # fmt: skip
    conv.append([draft])
    with again(place, conv) as back:
        back.set_title("t")
        (message,) = [m for m in back.messages() if m.seq == 2]
        assert isinstance(message.parts[1], clew.Image)
        assert message.parts[1].hash is not None
        assert back.blob(message.parts[1].hash) == PNG
        assert (message.parts[0], message.author) == (clew.Text("see \udc80"), "ann")
        assert message.meta == {"reply_to": "r"}


def test_a_crash_between_the_commit_and_the_note_in_the_file_doubles_nothing(
    place: Path, conv: clew.Conversation
) -> None:
    """S40.5 Never appended again once acknowledged: by key and by uid."""
    file = Path(f"{place}.spool")
    conv.append([clew.user("keyed", key="k")])
    conv.append([clew.user("unkeyed")])
    before = file.read_bytes()
    for _ in range(2):
        with again(place, conv) as back:
            back.set_title("t")
            assert said(back) == ["first", "keyed", "unkeyed"]
        file.write_bytes(before)  # as if nobody had noted it
    with clew.open(place) as store:
        assert store.bring_in().stopped is None
        assert store.health().spooled == 0


def test_what_is_stored_after_all_is_found(place: Path, conv: clew.Conversation) -> None:
    """S40.5 A write whose outcome nobody knew: the record and the store have its uid."""
    with again(place, conv) as back:
        uid = back.append([clew.user("in doubt")]).uids[0]
    draft = clew.Draft(role=clew.Role.USER, parts=(clew.Text("in doubt"),), uid=uid, after=1)
    assert conv.append([draft]).spooled
    with again(place, conv) as back:
        back.append([clew.user("next")])
        assert said(back) == ["first", "in", "next"]


def test_several_that_bring_in_and_write_at_once_keep_order_and_number(
    place: Path, conv: clew.Conversation
) -> None:
    """S40.1 Two handles, eight threads, one spool: each message once, each sender's in order."""
    for n in range(40):
        conv.append([clew.user(f"s-{n}")])
    with again(place, conv) as one, again(place, conv) as two, ThreadPoolExecutor(8) as pool:
        list(pool.map(
            lambda n: (one, two)[n % 2].append([clew.user(f"t{n}-0")]), range(8)
        ))  # fmt: skip
        log = said(one)
        assert [text for text in log if text.startswith("s-")] == [f"s-{n}" for n in range(40)]
        assert sorted(log) == sorted(set(log))
        assert len(log) == 1 + 40 + 8
        assert log[1:41] == [f"s-{n}" for n in range(40)]  # before anything written later


def test_killed_writers_lose_nothing_that_was_promised(
    place: Path, conv: clew.Conversation
) -> None:
    """S40.1 kill -9 at any moment of a write to the spool, by two processes at once."""
    promised: dict[str, list[str]] = {"a": [], "b": []}
    for count in (1, 3, 8, 20):
        writers = {
            name: subprocess.Popen(
                [sys.executable, str(WRITER), str(place), conv.id, name + str(count)],
                stdout=subprocess.PIPE, text=True,
            )
            for name in promised
        }  # fmt: skip
        for name, writer in writers.items():
            assert writer.stdout is not None
            for _ in range(count):
                promised[name].append(writer.stdout.readline().strip())
            writer.kill()
            promised[name] += [line.strip() for line in writer.stdout if line.endswith("\n")]
            writer.wait()
            writer.stdout.close()
    with again(place, conv) as back:
        back.append([clew.user("end")])
        log = said(back)
    for name, lines in promised.items():
        mine = [text for text in log if text.startswith(name)]
        assert len(mine) == len(set(mine))
        assert set(lines) <= set(mine)
        assert len(mine) - len(lines) <= 4  # the last of each may be there unpromised
        for run in {text.split("-")[0] for text in mine}:
            numbers = [int(t.split("-")[1]) for t in mine if t.split("-")[0] == run]
            assert numbers == sorted(numbers)


def test_a_torn_last_record_is_told_and_the_next_takes_its_place(
    place: Path, conv: clew.Conversation
) -> None:
    """S40.1 Every byte of the last record, cut off: those before it come in, and the next goes
    where it was."""
    file = Path(f"{place}.spool")
    conv.append([clew.user("whole")])
    first = spool_at(place).contents().used
    conv.append([clew.user("torn")])
    size = spool_at(place).contents().used - first
    data = file.read_bytes()
    start = FIRST + first
    for cut in range(0, size, 11):
        end = start + cut
        file.write_bytes(data[:end] + bytes(len(data) - end))
        found = spool_at(place).contents()
        assert [e.state for e in found.entries][:1] == ["pending"]
        assert found.torn is bool(data[start:end].strip(b"\0") and len(found.entries) == 1)
        if cut in (0, 33, 66):
            copy, held = place.with_name(f"{cut}.db"), Path(f"{place.parent}/{cut}.db.spool")
            shutil.copy(place, copy)
            shutil.copy(file, held)
            with clew.open(copy) as store:
                back = store.profile("p").open(conv.id)
                store.close()
                assert back.append([clew.user("after")]).spooled
            with clew.open(copy) as store:
                back = store.profile("p").open(conv.id)
                back.set_title("t")
                assert said(back) == ["first", "whole", "after"]
    file.write_bytes(data)


@contextmanager
def limited(size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes: a disk that is full for those."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def until_refused(conv: clew.Conversation) -> None:
    """Write what is no message, for as long as there is room."""
    while True:
        conv.set_todos([clew.Todo(f"{n} " + os.urandom(400).hex()) for n in range(300)])


def test_a_full_disk_sends_messages_to_the_room_that_was_reserved(fast_dir: Path) -> None:
    """S40.8 StoreFull: the message is accepted, order is kept, recovery needs no hand."""
    with clew.open(fast_dir / "a.db", limits=clew.Limits(spool=1 << 20)) as store:
        conv = store.profile("p").create()
        conv.append([clew.user("first")])
        room = (fast_dir / "a.db-wal").stat().st_size
        with limited(max(room, 1 << 20)):
            outcomes = [
                conv.append([clew.user(f"m{n} " + os.urandom(9000).hex())]) for n in range(90)
            ]
            full = [o.spooled for o in outcomes if o.spooled]
            assert full
            assert "space" in full[0]
            assert store.health().state == "spooling"
            with pytest.raises(clew.StoreFull):
                until_refused(conv)
            with pytest.raises(clew.StoreFull, match="used up"):
                conv.append([clew.user(os.urandom(600_000).hex())])
        assert conv.append([clew.user("last")]).spooled is None
        assert said(conv) == ["first", *(f"m{n}" for n in range(90)), "last"]
        assert store.verify() == []


def test_a_spool_that_is_used_up_acknowledges_nothing(fast_dir: Path) -> None:
    with clew.open(fast_dir / "a.db", limits=clew.Limits(spool=64 << 10)) as store:
        conv = store.profile("p").create()
        conv.append([clew.user("first")])
    kept, refused = 0, None
    while refused is None:
        try:
            assert conv.append([clew.user(f"m{kept} " + os.urandom(2000).hex())]).spooled
        except clew.StoreFull as error:
            refused = str(error)
        else:
            kept += 1
    assert "used up" in refused
    assert kept > 5
    with pytest.raises(clew.StoreFull):
        conv.append(
            [clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=os.urandom(1 << 20)),))]
        )
    with clew.open(fast_dir / "a.db") as store:
        back = store.profile("p").open(conv.id)
        back.append([clew.user("last")])
        assert said(back) == ["first", *(f"m{n}" for n in range(kept)), "last"]
        assert store.health().room == (16 << 20) - FIRST


def test_a_store_that_is_replaced_sends_messages_to_the_spool(place: Path) -> None:
    """S38.2 and S40.8: diverted, not retried, and brought in by whoever opens the path."""
    with clew.open(place) as store:
        conv = store.profile("p").create()
        conv.append([clew.user("first")])
    copy = place.with_name("copy.db")
    shutil.copy(place, copy)
    store = clew.open(place)
    conv = store.profile("p").open(conv.id)
    conv.append([clew.user("lost with the file")])
    os.replace(copy, place)
    for left in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(f"{place}{left}")
    kept = conv.append([clew.user("kept")])
    assert kept.spooled is not None
    with pytest.raises(clew.StoreReplaced):
        conv.set_title("t")
    assert store.health().spooled == 1
    with clew.open(place) as other:
        back = other.profile("p").open(conv.id)
        back.append([clew.user("next")])
        assert said(back) == ["first", "kept", "next"]
    with suppress(clew.StoreError):
        store.close()


def test_without_a_spool_the_caller_gets_what_the_store_said(fast_dir: Path) -> None:
    with clew.open(fast_dir / "a.db", spool=False) as store:
        conv = store.profile("p").create()
        assert store.health().spool is None
    with pytest.raises(clew.StoreClosed):
        conv.append([clew.user("late")])


# ---------------------------------------------------------------------- turns


def test_a_step_that_is_spooled_stops_the_turn_and_comes_in_under_it(place: Path) -> None:
    """S39.4 A turn's messages are diverted, with no endless retry; what its call took is kept."""
    store = clew.open(place)
    conv = store.profile("p").create()
    turn = conv.begin_turn([clew.user("ask")], call=clew.CallPlan(model="m"))
    assert isinstance(turn, clew.TurnHandle)
    turn.save_partial(turn.call or 0, "the ans")
    store.close()
    result = clew.CallResult(usage=clew.Usage(input=7, output=5))
    with pytest.raises(clew.Spooled) as spooled:
        turn.finish([clew.assistant("the answer")], call=turn.call, result=result)
    assert spooled.value.conversation == conv.id
    with pytest.raises(clew.StoreClosed):  # nothing of it could be kept
        turn.finish()
    with clew.open(place) as store:
        back = store.profile("p").open(conv.id)
        back.set_title("t")
        (ended,) = back.turns(5)
        messages = list(back.messages())
        assert (ended.state, [m.turn for m in messages]) == ("interrupted", [1, 1])
        assert said(back) == ["ask", "the"]
        assert messages[1].uid == spooled.value.uids[0]
        assert back.usage()[0].usage.output == 5
        assert back.info().turn is None
        assert store.verify() == []


def test_a_step_whose_right_was_lost_goes_to_a_branch_of_its_own(place: Path) -> None:
    """S40.6 Never refused, never dropped: the stale one is in a conversation `recovered`."""
    store = clew.open(place)
    conv = store.profile("p").create()
    turn = conv.begin_turn([clew.user("ask")])
    assert isinstance(turn, clew.TurnHandle)
    store.close()
    with clew.open(place) as other:  # before anything waits: another takes it over
        back = other.profile("p").open(conv.id)
        assert back.interrupt_turn("somebody else")
        back.append([clew.user("meanwhile")])
    with pytest.raises(clew.Spooled):
        turn.record([clew.assistant("stale")])
    with clew.open(place) as other:
        profile = other.profile("p")
        back = profile.open(conv.id)
        back.append([clew.user("next")])
        assert said(back) == ["ask", "meanwhile", "next"]
        (found,) = profile.list(clew.ListFilter(source="recovered")).items
        branch = profile.open(found.id)
        assert said(branch) == ["ask", "stale"]
        assert branch.info().meta["recovered"]["from"] == conv.id  # type: ignore[index]
        assert other.health().recovered == 1
        assert other.verify() == []


def test_a_message_that_was_to_begin_a_turn_waits_for_one(
    place: Path, conv: clew.Conversation
) -> None:
    with pytest.raises(clew.Spooled):
        conv.begin_turn([clew.user("ask", key="u-1")])
    with pytest.raises(clew.StoreClosed):
        conv.begin_turn(head=1)
    with clew.open(place) as store:
        store.profile("p").open(conv.id).set_title("t")
        (left,) = store.profile("p").unfinished()
        turn = left.begin_turn([clew.user("ask", key="u-1")])  # the caller tries again
        assert isinstance(turn, clew.TurnHandle)
        turn.finish([clew.assistant("answer")])
        assert said(left) == ["first", "ask", "answer"]


def test_what_a_channel_delivers_is_received_once_when_the_store_is_back(place: Path) -> None:
    """S40.10 The delivery is kept with its key, so its redelivery changes nothing."""

    def receive(profile: clew.Profile) -> object:
        return profile.receive(
            "chat-7", [clew.user("hello")], source="telegram", account="bot", key="u1"
        )

    with clew.open(place) as store:
        profile = store.profile("p")
        profile.receive("chat-7", [clew.user("one")], source="telegram", account="bot", key="u0")
    with pytest.raises(clew.Spooled):
        receive(profile)
    with pytest.raises(clew.Spooled):
        receive(profile)  # the channel was not told
    with clew.open(place) as store:
        profile = store.profile("p")
        receive(profile)
        conv = profile.bound("chat-7", source="telegram")
        assert conv is not None
        assert said(conv) == ["one", "hello"]
        assert store.health().spooled == 0


# ---------------------------------------------------------------------- what does not fit


@pytest.mark.parametrize("how", ["ended", "read only", "clash", "expected head"])
def test_what_does_not_fit_any_more_is_recovered(
    place: Path, conv: clew.Conversation, how: str
) -> None:
    """S40.6 A conversation that takes it no more: a branch, reported, never refused."""
    conv.append([clew.user("mine", key="k")], head=1 if how == "expected head" else None)
    before = Path(f"{place}.spool").read_bytes()
    Path(f"{place}.spool").unlink()
    with again(place, conv) as back:  # a host that knows nothing of this spool
        match how:
            case "ended":
                back.end("reset")
            case "read only":
                back.mark(read_only=True)
            case _:
                back.append([clew.user("other", key="k" if how == "clash" else None)])
    log = 2 if how in ("clash", "expected head") else 1
    for _ in range(2):  # the second time nobody had noted the first
        Path(f"{place}.spool").write_bytes(before)
        with clew.open(place) as store:
            profile = store.profile("p")
            report = store.bring_in()
            assert report.stopped is None
            assert len(report.recovered) == 1
            (found,) = profile.list(clew.ListFilter(source="recovered")).items
            assert said(profile.open(found.id))[-1] == "mine"
            assert len(said(profile.open(conv.id))) == log
            assert profile.open(found.id).info().message_count == (log + 1 if log == 1 else
                len(said(profile.open(found.id))))  # fmt: skip
            assert store.health().spooled == 0
            assert store.verify() == []


def test_a_conversation_that_nobody_knows_is_held_until_a_person_decides(
    place: Path, conv: clew.Conversation
) -> None:
    conv.append([clew.user("mine")])
    other = place.with_name("other.db")
    with clew.open(other) as store:
        store.profile("p").create()
    Path(f"{place}.spool").rename(f"{other}.spool")
    with clew.open(other) as store:
        first = store.profile("p").create()
        assert (store.health().held, store.health().spooled) == (1, 0)
        assert first.append([clew.user("x")]).spooled is None  # nobody waits for it
    Path(f"{other}.spool").rename(f"{place}.spool")
    with clew.open(place) as store:
        assert store.health().held == 1
        assert [b.state for b in store.bring_in().brought] == ["done"]
        assert said(store.profile("p").open(conv.id)) == ["first", "mine"]
        assert store.health().held == 0


def test_messages_are_taken_out_for_good(place: Path, conv: clew.Conversation) -> None:
    """S40.9 What is erased or deleted is not in the spool either, as bytes."""
    conv.append([clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=PNG[:400]),), key="gone")])
    with again(place, conv) as back:
        other = back  # an open handle writes nothing here
        assert other.id == conv.id
        spool = spool_at(place)
        assert [e.record.conversation for e in spool.contents().entries if e.record] == [conv.id]
        assert spool.remove(lambda record: record.conversation == conv.id) == 1
        spool.close()
    data = Path(f"{place}.spool").read_bytes() if Path(f"{place}.spool").exists() else b""
    assert b"gone" not in data
    assert not data[FIRST:].strip(b"\0")
    with again(place, conv) as back:
        back.set_title("t")
        assert said(back) == ["first"]


# ---------------------------------------------------------------------- the file itself


def test_a_file_that_was_taken_away_is_never_written_into(
    place: Path, conv: clew.Conversation
) -> None:
    with clew.open(place) as store:
        back = store.profile("p").open(conv.id)
        back.append([clew.user("x")])
        Path(f"{place}.spool").unlink()
        store.close()
        assert back.append([clew.user("kept")]).spooled
    assert spool_at(place).contents().counted(("pending",)) == 1
    with again(place, conv) as back:
        back.set_title("t")
        assert said(back) == ["first", "x", "kept"]


def test_what_is_no_spool_is_set_aside_and_not_written_over(
    place: Path, conv: clew.Conversation
) -> None:
    Path(f"{place}.spool").write_bytes(b"somebody's notes")
    assert conv.append([clew.user("kept")]).spooled
    assert Path(f"{place}.spool.damaged-1").read_bytes().startswith(b"somebody's notes")
    with again(place, conv) as back:
        back.set_title("t")
        assert said(back) == ["first", "kept"]


def test_a_damaged_record_costs_itself_only(place: Path, conv: clew.Conversation) -> None:
    for text in ("a", "b", "c"):
        conv.append([clew.user(text)])
    file = Path(f"{place}.spool")
    second = spool_at(place).contents().entries[1]
    data = bytearray(file.read_bytes())
    data[second.offset + HEADER + 5] ^= 0xFF
    file.write_bytes(data)
    with clew.open(place) as store:
        back = store.profile("p").open(conv.id)
        back.set_title("t")
        assert said(back) == ["first", "a", "c"]
        assert store.health().damaged == 1
    assert file.exists()  # it is evidence
    file.unlink()


def test_a_forked_child_spools_nothing(place: Path, conv: clew.Conversation) -> None:
    with again(place, conv) as back:
        back.append([clew.user("parent")])
        pid = os.fork()
        if pid == 0:
            try:
                back.append([clew.user("child")])
            except clew.StoreClosed:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        assert back.append([clew.user("parent again")]).spooled is None
        assert said(back) == ["first", "parent", "parent"]


def test_room_is_made_where_only_what_is_held_is_left(fast_dir: Path) -> None:
    """Done records go when the rest needs their room; what is held stays, in order."""
    size = clew.Limits(spool=64 << 10)
    with clew.open(fast_dir / "a.db", limits=size) as store:
        conv = store.profile("p").create()
        gone = store.profile("p").create()
    assert conv.append([clew.user("m " + os.urandom(9000).hex())]).spooled
    assert gone.append([clew.user("held")]).spooled
    spool = Spool(Path(f"{fast_dir / 'a.db'}.spool"), 64 << 10)
    spool.settle([spool.contents().entries[1]], "unknown")
    spool.settle([spool.contents().entries[0]], "done")
    for n in range(5):
        record = next(e.record for e in spool.contents().entries if e.record)
        spool.add(record)
        waiting = [e for e in spool.contents().entries if e.state == "pending"]
        assert len(waiting) == 1, n
        spool.settle(waiting, "done")
    assert [e.state for e in spool.contents().entries] == ["unknown"]
    assert not spool.pending()
    spool.close()


def test_many_threads_into_one_spool(place: Path, conv: clew.Conversation) -> None:
    done = list[str]()

    def write(name: str) -> None:
        for n in range(25):
            assert conv.append([clew.user(f"{name}-{n}")]).spooled
            done.append(f"{name}-{n}")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with again(place, conv) as back:
        back.append([clew.user("end")])
        assert sorted(said(back)) == sorted([*done, "first", "end"])
        for name in "abcd":
            mine = [int(t.split("-")[1]) for t in said(back) if t.startswith(f"{name}-")]
            assert mine == list(range(25))


def test_a_limit_of_nothing_is_no_spool() -> None:
    assert spool_of(Path("/nowhere/a.db"), "id", 0) is None
