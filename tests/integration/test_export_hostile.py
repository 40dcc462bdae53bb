"""Files of clew's JSONL that are damaged, cut short or made by an enemy."""

from __future__ import annotations

import io
import json
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from copying import ENGINES, drop, fill, place
from exporting import brought, exported, file_of, lines, rows
from hypothesis import example, given
from hypothesis import strategies as st

import clew
from clew.errors import ClewError, InputError
from clew.importers.clew_jsonl import bring, sniff
from clew.importers.clew_lines import numbered
from clew.store import deletion
from servers import empty_database

Row = dict[str, Any]
Edit = Callable[[list[Row]], object]


@pytest.fixture(params=ENGINES)
def other(request: pytest.FixtureRequest, fast_dir: Path) -> Iterator[clew.Store]:
    """An empty store, in which every invariant holds in the end."""
    server = request.param == "server"
    with clew.open(empty_database() if server else fast_dir / "other.db") as store:
        yield store
        assert store.verify() == []


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of a store with something of everything."""
    with clew.open(tmp_path_factory.mktemp("filled") / "a.db") as store:
        fill(store)
        return exported(store.profile("one"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file of one conversation."""
    with clew.open(tmp_path_factory.mktemp("small") / "a.db") as store:
        return exported(_talk(store.profile("p")))


def _talk(profile: clew.Profile) -> clew.Profile:
    conv = profile.create(id="talk", prompt="be good", toolset=({"name": "f"},))
    turn = conv.begin_turn([clew.user("one", key="k")], call=clew.CallPlan(model="m"))
    assert isinstance(turn, clew.TurnHandle)
    turn.finish([clew.assistant("two")])
    conv.append([clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"img"),))])
    conv.append([clew.user(f"{i}") for i in range(4, 10)])
    conv.cut(conv.message(9).uid)
    conv.append([clew.user("ten")])
    for covers_to in (2, 4):
        attempt = conv.open_attempt()
        body = (clew.Inline(clew.Role.USER, (clew.Text("sum"),)), clew.Ref(2, 2))
        conv.commit_attempt(
            attempt.number,
            clew.Proposal(covers_to=covers_to, body=body, tokens_before=9, tokens_after=1),
        )
    conv.set_todos([clew.Todo("a"), clew.Todo("b")])
    conv.set_goal("win")
    conv.claim_alias("tool", "t-1")
    return profile


# ---------------------------------------------------------------- damage


def test_a_damaged_line_costs_itself_and_is_named(filled: bytes, fast_dir: Path) -> None:
    whole = lines(filled)
    seen: set[str] = set()
    for at in range(1, len(whole)):
        kind, id = (lambda row: (row["type"], row["in"]))(json.loads(whole[at]))
        damaged = [*whole]
        damaged[at] = damaged[at][: len(damaged[at]) // 2] + b"\xff\xfe"
        with clew.open(fast_dir / f"{at}.db") as store:
            profile = store.profile("one")
            found = brought(profile, file_of(damaged))
            assert [number for number, _ in found.damaged] == [at + 1]
            assert store.verify() == []
            others = [row["in"] for row in map(json.loads, whole[1:])]
            for other in {*others} - {id, *(refused for refused, _ in found.refused)}:
                assert profile.open(other)
            if kind == "conversation":
                assert id in [refused for refused, _ in found.refused]
            else:
                assert found.refused == ()
                assert (id in [noted for noted, _ in found.notes]) or kind == "end"
            if kind == "message":
                seq = json.loads(whole[at])["seq"]
                assert "is damaged" in profile.open(id).message(seq).text
                heads = [json.loads(line)["head"] for line in whole if b'"head"' in line]
                assert sum(heads) >= profile.open(id).info().head > 0
            seen.add(kind)
    assert seen >= {"conversation", "message", "blob", "cut", "compaction", "turn", "end", "prompt"}


def test_what_stands_in_keeps_every_seq_and_record(small: bytes, other: clew.Store) -> None:
    whole = lines(small)
    lost = next(i for i, line in enumerate(whole) if b'"seq":5' in line)
    whole[lost] = b"{"
    brought(other.profile("p"), file_of(whole))
    conv = other.profile("p").open("talk")
    assert [m.seq for m in conv.messages(hidden=True)] == list(range(1, 11))
    assert conv.message(5).role == "system"
    assert conv.message(6).text == "6"
    assert conv.info().generation == 2
    found = brought(other.profile("p"), small)  # the same file, whole: another message there now
    assert [id for id, _ in found.refused] == ["talk"]
    other.profile("p").delete("talk")
    assert brought(other.profile("p"), small).refused == ()


def test_an_image_that_is_lost_leaves_its_message(small: bytes, other: clew.Store) -> None:
    whole = lines(small)
    at = next(i for i, line in enumerate(whole) if b'"type":"blob"' in line)
    whole[at] = whole[at].replace(b'"data":"', b'"data":"AA')
    found = brought(other.profile("p"), file_of(whole))
    assert [number for number, _ in found.damaged] == [at + 1]
    assert "was here" in other.profile("p").open("talk").message(3).text


def test_a_file_that_ends_too_soon_is_noticed(small: bytes, fast_dir: Path) -> None:
    whole = lines(small)
    starts = [sum(len(line) + 1 for line in whole[:n]) for n in range(1, len(whole))]
    for n, cut in enumerate(start + extra for start in starts for extra in (0, 20)):
        with clew.open(fast_dir / f"{n}.db") as store:
            found = brought(store.profile("p"), small[:cut])
            assert store.verify() == []
            assert found.new == (cut > starts[0] + 20 or found.new)
            if found.new:
                assert any("last line is missing" in note for _, note in found.notes)
            brought(store.profile("p"), small)
            assert store.verify() == []
            assert store.profile("p").open("talk").info().message_count == 9


class Whole:
    """A whole file, and what it makes of an empty store. (A class, so that no failure shows it.)"""

    def __init__(self, data: bytes, folder: Path) -> None:
        self.data = data
        with clew.open(folder / "a.db") as store:
            brought(store.profile("one"), data)
            self.stored = rows(store, "one")


@pytest.fixture(scope="module")
def whole(filled: bytes, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    return Whole(filled, tmp_path_factory.mktemp("whole"))


Cuts = list[tuple[int, int, bytes]]
"""Places, bytes that are taken out there, and those that come for them."""
PLACE = st.tuples(st.integers(0, 1 << 16), st.integers(0, 200), st.binary(max_size=40))


@given(cuts=st.lists(PLACE, min_size=1, max_size=6))
@example(cuts=[(-1, 1, b"")])
def test_damage_is_said_or_harmless(whole: Whole, fast_dir: Path, cuts: Cuts) -> None:
    """Bytes that change, go and come anywhere: nothing crashes, no store is broken, and where
    nothing is said of it, all is stored as the file had it."""
    broken = bytearray(whole.data)
    for spot, size, put in cuts:
        at = spot % len(broken)
        broken[at : at + size] = put
    with clew.open(Path(tempfile.mkdtemp(dir=fast_dir)) / "a.db") as store:
        try:
            found = brought(store.profile("one"), bytes(broken))
        except InputError:
            assert bytes(broken).split(b"\n")[0] != whole.data.split(b"\n")[0]
        else:
            if not (found.damaged or found.notes or found.refused):
                assert rows(store, "one") == whole.stored
        assert store.verify() == []
        store.profile("one").create().append([clew.user("goes on")])


UNSAID: dict[str, Callable[[bytes], bytes]] = {
    "the last line end is missing": lambda data: data[:-1],
    "blank lines at the end": lambda data: data + b"\n\n",
    "blank lines in between": lambda data: data.replace(b"\n", b"\n\n"),
    "line ends of another system": lambda data: data.replace(b"\n", b"\r\n"),
    "line ends of both": lambda data: data.replace(b"\n", b"\r\n", 3),
    "who made it": lambda data: data.replace(b'"made_by":"test"', b'"made_by":"tess"'),
    "where it came from": lambda data: data.replace(b'"profile":"one"', b'"profile":"two"', 1),
    "white space in the header": lambda data: data.replace(b'{"clew":1,', b'{"clew" : 1 ,'),
    "white space in an end": lambda data: data.replace(b'"sha256":', b'"sha256" :\t'),
    "white space behind an end": lambda data: data.removesuffix(b"\n") + b"  \n",
    "how many messages an end counts": lambda data: data.replace(b'"messages":', b'"messages":1'),
    "something else in an end": lambda data: data.replace(b'"sha256":', b'"x":1,"sha256":'),
}


@pytest.mark.parametrize("change", UNSAID.values(), ids=UNSAID.keys())
def test_what_is_not_said_is_harmless(
    whole: Whole, other: clew.Store, change: Callable[[bytes], bytes]
) -> None:
    changed = change(whole.data)
    assert changed != whole.data
    found = brought(other.profile("one"), changed)
    assert (found.damaged, found.notes, found.refused) == ((), (), ())
    assert rows(other, "one") == whole.stored


# ---------------------------------------------------------------- hostile values


def facts(listed: list[Row]) -> Row:
    return next(row for row in listed if row["type"] == "conversation")


def one(listed: list[Row], kind: str, nth: int = 0) -> Row:
    return [row for row in listed if row["type"] == kind][nth]


def nested(depth: int) -> Any:
    return json.loads("[" * depth + "]" * depth)


REFUSED: dict[str, Edit] = {
    "an unknown kind": lambda x: facts(x).update(kind="tree"),
    "a root with an origin": lambda x: facts(x).update(origin="talk"),
    "a branch of nobody": lambda x: facts(x).update(kind="branch", base=3, origin="nobody"),
    "a branch of itself": lambda x: facts(x).update(kind="branch", base=3, origin="talk"),
    "a branch without a base": lambda x: facts(x).update(kind="branch", origin="nobody"),
    "a delegate with a base": lambda x: facts(x).update(kind="delegate", base=2),
    "a head below the base": lambda x: facts(x).update(kind="branch", base=99, origin="x"),
    "an empty id": lambda x: [row.update({"in": ""}) for row in x[1:]],
    "an id with NUL": lambda x: [row.update({"in": "a\0b"}) for row in x[1:]],
    "an endless id": lambda x: [row.update({"in": "a" * 5000}) for row in x[1:]],
    "an endless title": lambda x: facts(x).update(title_user="t" * 5000),
    "an empty source": lambda x: facts(x).update(source=""),
    "an unknown end": lambda x: facts(x).update(ended_at=5, end_reason="because"),
    "half an end": lambda x: facts(x).update(ended_at=5),
    "a time before 1970": lambda x: facts(x).update(created_at=-1),
    "a time after all": lambda x: facts(x).update(active_at=1 << 62),
    "a number beyond all": lambda x: facts(x).update(view=1 << 64),
    "a huge meta": lambda x: facts(x).update(meta={"m": "x" * 100_000}),
    "a missing message": lambda x: x.remove(one(x, "message", 3)),
}

SKIPPED: dict[str, Edit] = {
    "a first message that is far away": lambda x: one(x, "message").update(seq=1 << 40),
    "seq 0": lambda x: one(x, "message").update(seq=0),
    "a negative seq": lambda x: one(x, "message").update(seq=-1),
    "an unknown role": lambda x: one(x, "message").update(role="root"),
    "parts that are none": lambda x: one(x, "message").update(parts=[{"type": "text"}]),
    "a part of no kind": lambda x: one(x, "message").update(parts=[{"type": "virus"}]),
    "a uid that is none": lambda x: one(x, "message").update(uid="../../etc"),
    "a deep value": lambda x: one(x, "message").update(
        parts=[{"type": "unknown", "value": nested(400)}]
    ),
    "a huge message": lambda x: one(x, "message").update(
        parts=[{"type": "text", "text": "x" * (17 << 20)}]
    ),
    "a huge key": lambda x: one(x, "message").update(key="k" * 5000),
    "a huge meta of a message": lambda x: one(x, "message").update(meta={"m": "x" * 100_000}),
    "a message that replaces a later one": lambda x: one(x, "message").update(replaces=5),
    "a negative count": lambda x: one(x, "message").update(tokens=-1),
    "a message twice": lambda x: x.insert(x.index(one(x, "message", 4)), one(x, "message", 2)),
    "bytes of another hash": lambda x: one(x, "blob").update(data="AAAA"),
    "bytes that are none": lambda x: one(x, "blob").update(data="!"),
    "a hash that is none": lambda x: one(x, "blob").update(hash="../x"),
    "a prompt of another hash": lambda x: one(x, "prompt").update(text="be bad"),
    "tools of another hash": lambda x: one(x, "toolset").update(schemas=[{"name": "g"}]),
    "a cut above the head": lambda x: one(x, "cut").update(to_seq=99),
    "a cut the wrong way": lambda x: one(x, "cut").update(from_seq=9, to_seq=8),
    "a cut from 0": lambda x: one(x, "cut").update(from_seq=0),
    "a cut twice": lambda x: x.insert(-1, one(x, "cut")),
    "a compaction above the head": lambda x: one(x, "compaction").update(covers_to=99),
    "a compaction of unknown cuts": lambda x: one(x, "compaction").update(cuts=[7]),
    "a compaction that grows": lambda x: one(x, "compaction").update(tokens_after=10),
    "a body out of order": lambda x: one(x, "compaction").update(
        body=[{"type": "ref", "first": 2, "last": 2}, {"type": "ref", "first": 1, "last": 1}]
    ),
    "a body beyond": lambda x: one(x, "compaction").update(
        body=[{"type": "ref", "first": 2, "last": 8}]
    ),
    "a body before": lambda x: one(x, "compaction").update(body=[{"type": "stub", "seq": 0,
                                                                   "text": ""}]),
    "a running turn": lambda x: one(x, "turn").update(state="running", ended_at=None),
    "a turn without end": lambda x: one(x, "turn").pop("ended_at"),
    "a turn from the future": lambda x: one(x, "turn").update(first_seq=50),
    "a call from the future": lambda x: one(x, "model_call").update(up_to_seq=50),
    "an endless cost": lambda x: one(x, "model_call").update(cost=1e999),
    "an open attempt that ended": lambda x: one(x, "attempt").update(state="open"),
    "a second active goal": lambda x: x.insert(-1, one(x, "goal") | {"number": 2}),
    "an alias without a name": lambda x: one(x, "alias").update(foreign_id=""),
    "an unknown kind of line": lambda x: x.insert(5, {"type": "code", "in": "talk"}),
    "a line that is a list": lambda x: x.insert(5, []),  # type: ignore[arg-type]
}  # fmt: skip

HARMLESS: dict[str, Edit] = {
    "a body with a missing image": lambda x: one(x, "compaction").update(
        body=[{"type": "inline", "role": "user", "parts": [{"type": "image", "hash": "00" * 32}]}]
    ),
    "a turn that nobody began": lambda x: one(x, "message", 2).update(turn=77),
    "a turn in pieces": lambda x: one(x, "message", 6).update(turn=1),
    "a key of another message": lambda x: one(x, "message", 4).update(key="k"),
    "an image that is nowhere": lambda x: one(x, "message", 4).update(
        parts=[{"type": "image", "hash": "ab" * 32}]
    ),
    "an image in a message": lambda x: one(x, "message", 4).update(
        parts=[{"type": "image", "data": "AAAA"}]
    ),
    "an attempt that is nowhere": lambda x: one(x, "compaction").update(attempt=9),
    "one attempt for two": lambda x: one(x, "compaction", 1).update(attempt=1),
    "a prompt that is nowhere": lambda x: (
        facts(x).update(prompt="cd" * 32), one(x, "model_call").update(prompt="cd" * 32)
    ),
    "a count that is none": lambda x: facts(x).update(cuts=1 << 60, calls=1 << 60),
    "a low view": lambda x: facts(x).update(view=0, fence=0),
    "a high generation": lambda x: facts(x).update(generation=99),
    "an alias twice": lambda x: x.insert(-1, one(x, "alias")),
    "another hash": lambda x: one(x, "end").update(sha256="00" * 32),
}  # fmt: skip


def edited(data: bytes, edit: Edit) -> bytes:
    listed = [json.loads(line) for line in lines(data)]
    edit(listed)
    return file_of(json.dumps(row).encode() for row in listed)


@pytest.mark.parametrize("edit", REFUSED.values(), ids=REFUSED.keys())
def test_a_conversation_that_cannot_be_is_refused(
    small: bytes, other: clew.Store, edit: Edit
) -> None:
    found = brought(other.profile("p"), edited(small, edit))
    assert found.refused or found.damaged
    assert other.list_all().items == () or found.refused


@pytest.mark.parametrize("edit", SKIPPED.values(), ids=SKIPPED.keys())
def test_a_line_that_cannot_be_is_skipped(small: bytes, other: clew.Store, edit: Edit) -> None:
    found = brought(other.profile("p"), edited(small, edit))
    assert (found.refused, found.damaged_count) == ((), 1)
    conv = other.profile("p").open("talk")
    assert (conv.info().head, conv.message(10).text) == (10, "ten")
    assert conv.context()


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS.keys())
def test_a_lie_breaks_nothing(small: bytes, other: clew.Store, edit: Edit) -> None:
    found = brought(other.profile("p"), edited(small, edit))
    assert (found.refused, found.damaged, found.new) == ((), (), 1)
    conv = other.profile("p").open("talk")
    assert (conv.info().head, conv.message(10).text) == (10, "ten")
    conv.append([clew.user("goes on")])


# ---------------------------------------------------------------- whose it is


@pytest.mark.parametrize("engine", ENGINES)
def test_an_id_of_another_profile_is_refused(small: bytes, fast_dir: Path, engine: str) -> None:
    with clew.open(place(engine, fast_dir, "b")) as store:
        mine = store.profile("mine").create(id="talk")
        mine.append([clew.user("private")])
        before = rows(store, "mine")
        found = brought(store.profile("p"), small)
        assert [id for id, _ in found.refused] == ["talk"]
        assert "private" not in str(found)
        assert (store.profiles(), rows(store, "mine")) == ((("mine", 1),), before)
    drop()


def test_a_branch_of_another_profile_is_refused(fast_dir: Path, other: clew.Store) -> None:
    with clew.open(fast_dir / "a.db") as store:
        conv = store.profile("p").create(id="origin")
        conv.append([clew.user("hers")])
        conv.branch(new=clew.NewConversation(id="branch")).append([clew.user("b")])
        data = exported(store.profile("p"))
    brought(other.profile("hers"), data)
    whole = lines(data)
    begin = next(i for i, line in enumerate(whole) if b'"in":"branch"' in line)
    renamed = file_of([whole[0], *whole[begin:]]).replace(b'"in":"branch"', b'"in":"mine"')
    found = brought(other.profile("mine"), renamed)
    assert [id for id, _ in found.refused] == ["mine"]
    assert other.profiles() == (("hers", 2),)


def test_another_conversation_of_the_same_id_is_refused(small: bytes, other: clew.Store) -> None:
    other.profile("p").create(id="talk").append([clew.user("another")])
    before = rows(other, "p")
    assert [id for id, _ in brought(other.profile("p"), small).refused] == ["talk"]
    assert rows(other, "p") == before


def test_one_that_is_being_deleted_leaves_the_others_alone(
    fast_dir: Path, other: clew.Store
) -> None:
    """Small conversations share a transaction; what one of them meets there is its own."""
    with clew.open(fast_dir / "a.db") as store:
        for id in ("a", "b", "c"):
            store.profile("p").create(id=id).append([clew.user(id)])
        data = exported(store.profile("p"))
    profile = other.profile("p")
    profile.create(id="b").append([clew.user("going")])
    profile._db.write(deletion.Begin(profile._db.kit, "p", "b"))
    found = brought(profile, data)
    assert (found.new, found.messages, [id for id, _ in found.refused]) == (2, 2, ["b"])
    assert [m.text for m in profile.open("c").messages()] == ["c"]
    other.maintain()
    assert brought(profile, data).new == 1


def test_a_claimed_alias_stays_with_whom_it_names(small: bytes, other: clew.Store) -> None:
    first = other.profile("p").create(id="first")
    first.claim_alias("tool", "t-1")
    brought(other.profile("p"), small)
    assert [a.state for a in first.aliases()] == ["claimed"]
    assert [a.state for a in other.profile("p").open("talk").aliases()] == ["ambiguous"]


# ---------------------------------------------------------------- files that are none


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"{}", b"[]", b"null", b"\0" * 5000, b"PK\x03\x04", b"\xff" * 100,
     b'{"clew":"1"}', b'{"clew":1}', b'{"clew":' + b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_export_is_refused_whole(other: clew.Store, data: bytes) -> None:
    if data:
        with pytest.raises(InputError, match="first line"):
            brought(other.profile("p"), data)
    else:
        assert brought(other.profile("p"), data).new == 0
    assert not sniff(data)


def test_a_later_version_is_refused(small: bytes, other: clew.Store) -> None:
    assert sniff(small)
    with pytest.raises(InputError, match="newer clew"):
        brought(other.profile("p"), small.replace(b'{"clew":1', b'{"clew":2', 1))


def test_line_ends_bom_and_blank_lines_of_other_systems(small: bytes, other: clew.Store) -> None:
    data = b"\xef\xbb\xbf" + small.replace(b"\n", b"\r\n\r\n")
    found = brought(other.profile("p"), data)
    assert (found.new, found.damaged, found.notes, found.refused) == (1, (), (), ())
    assert sniff(data)


def test_files_one_behind_another_are_one(small: bytes, filled: bytes, other: clew.Store) -> None:
    found = brought(other.profile("p"), small + filled)
    assert (found.new, found.damaged, found.refused) == (12, (), ())


@pytest.mark.parametrize("length", range(30))
def test_lines_of_any_length(length: int) -> None:
    """By one rule, however many pieces a line is read in."""
    for end in (b"\n", b""):
        stream = io.BytesIO(b"ab\n" + b"x" * length + b"\n\n" + b"y" * length + end)
        found = [tuple(line) for line in numbered(stream, longest=20)]
        data = None if length > 20 else b"x" * length
        last = None if length > 20 else b"y" * length
        wanted = [(1, b"ab", 3, True), (2, data, length + 1, True), (3, b"", 1, True)]
        if length or end:
            wanted.append((4, last, length + len(end), end == b"\n"))
        assert found == wanted


def test_a_line_without_end_costs_no_memory() -> None:
    class Endless(io.RawIOBase):
        left = 300 << 20

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            buffer[:] = b"x" * len(buffer)
            self.left -= len(buffer)
            return len(buffer) if self.left > 0 else 0

    tracemalloc.start()
    try:
        (line,) = numbered(io.BufferedReader(Endless()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert line.data is None
    assert peak < 150 << 20


def test_a_value_without_end_is_skipped(small: bytes, other: clew.Store) -> None:
    value = b'"parts":[{"type":"unknown","value":'
    found = brought(other.profile("p"), small.replace(b'"parts":[', value + b"[" * 100_000, 1))
    assert [reason for _, reason in found.damaged] == ["nested too deeply"]
    assert other.profile("p").open("talk").info().head == 10


def test_errors_hold_nothing_that_acts(small: bytes, other: clew.Store) -> None:
    """What a report quotes is a matter of who prints it; that it is text, of this."""
    data = small.replace(b'"role":"user"', b'"role":"\\u001b[31m"')
    for _, reason in brought(other.profile("p"), data).damaged:
        assert isinstance(reason, str)
        reason.encode()


def test_a_store_that_fails_ends_the_import(small: bytes, fast_dir: Path) -> None:
    store = clew.open(fast_dir / "closed.db")
    profile = store.profile("p")
    store.close()
    with pytest.raises(ClewError):
        bring(profile, io.BytesIO(small))
