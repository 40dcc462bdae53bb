"""clew's own JSONL: export and import give an equal store, on all engines."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from copying import ENGINES, drop, fill, place
from exporting import brought, exported, file_of, lines, rows

import clew
from clew.domain.conversations import ListFilter
from clew.errors import StoreError
from clew.importers.clew_jsonl import bring
from clew.store import deletion
from clew.store.transfer_dump import Dump
from clew.store.transfer_lines import End, Facts
from clew.store.transfer_text import decode

DIRECTIONS = list(itertools.product(ENGINES, ENGINES))
ODD = "a\u2028b\u2029c\u0085d\0e \ud83d alone \ud83d\ude00 apart \U0001f600 one 你好 \x7f\x9b"


@pytest.fixture(autouse=True)
def dropped() -> Iterator[None]:
    yield
    drop()


@pytest.fixture(params=DIRECTIONS, ids="-".join)
def both(request: pytest.FixtureRequest, fast_dir: Path) -> Iterator[tuple[clew.Store, clew.Store]]:
    """A filled store, and an empty one."""
    source, dest = (place(engine, fast_dir, f"{i}") for i, engine in enumerate(request.param))
    with clew.open(source) as one, clew.open(dest) as other:
        fill(one)
        _more(one.profile("one"))
        yield one, other
        assert other.verify() == []


@pytest.fixture
def files(fast_dir: Path) -> Iterator[tuple[clew.Store, clew.Store]]:
    with clew.open(fast_dir / "a.db") as one, clew.open(fast_dir / "b.db") as other:
        yield one, other
        assert other.verify() == []


def _more(profile: clew.Profile) -> None:
    """What fill() leaves out: three titles and their lock, odd text everywhere it can stand, an
    undone cut, foreign compactions, one undone, a waiting turn, a goal that is done."""
    conv = profile.create(id="odd", meta={"k": [1, 2.5, None, ODD, 1 << 70]}, prompt=ODD)
    conv.set_prompt("another prompt", ({"type": "function", "function": {"name": "f"}},))
    parts = (clew.Text(ODD), clew.Unknown({"deep": [[{"x": ODD}]], "big": 1 << 80, "f": 1e-7}))
    conv.append([clew.Draft(role=clew.Role.USER, parts=parts, meta={"m": ODD}, tokens=7)])
    conv.append([
        clew.Draft(role=clew.Role.ASSISTANT, parts=(clew.Text("x"),), api_group="g", author="Ann"),
        clew.Draft(role=clew.Role.SYSTEM, parts=()),
        clew.Draft(role=clew.Role.DEVELOPER, parts=(clew.Text("x"),), created_at=5),
    ])  # fmt: skip
    conv.cut(conv.message(3).uid)
    conv.undo_cut()
    conv.cut(conv.message(4).uid, by="ann")
    conv.append([clew.user("after the cut")])
    image = clew.Image(data=b"\x89PNG in a summary")
    blob = clew.Image(hash=_stored(conv, image))
    for body in ((clew.Inline(clew.Role.USER, (clew.Text(ODD), blob)),), (clew.Ref(1, 2),)):
        conv.record_foreign_compaction(
            clew.Proposal(covers_to=2, body=body, tokens_before=0, tokens_after=9,
                          receipt={"r": ODD})
        )  # fmt: skip
    conv.undo_compaction(2)
    conv.set_title("by a model", "llm")
    conv.set_title("derived", "derived")
    conv.lock_title("by a person")
    conv.set_goal("old")
    conv.set_goal("newer")
    conv.close_goal()
    conv.claim_alias("tool", "x-1")
    profile.create(id="rival").claim_alias("tool", "x-1")
    waits = profile.create(id="waits")
    turn = waits.begin_turn([clew.user("may I?")], call=clew.CallPlan(model="m", settings={"t": 1}))
    assert isinstance(turn, clew.TurnHandle)
    turn.wait()
    conv.end("closed")


def _stored(conv: clew.Conversation, image: clew.Image) -> str:
    seq = conv.append([clew.Draft(role=clew.Role.USER, parts=(image,))]).seqs[0]
    part = conv.message(seq).parts[0]
    assert isinstance(part, clew.Image)
    assert part.hash
    return part.hash


def test_an_import_of_an_export_is_equal(both: tuple[clew.Store, clew.Store]) -> None:
    one, other = both
    for name in ("one", "two"):
        data = exported(one.profile(name))
        first = brought(other.profile(name), data)
        assert (first.damaged, first.refused, first.notes) == ((), (), ())
        assert first.new == len(rows(one, name)) - 1
        assert rows(other, name) == rows(one, name)
        again = brought(other.profile(name), data)
        assert (again.new, again.grown, again.unchanged, again.messages) == (0, 0, first.new, 0)
        assert rows(other, name) == rows(one, name)
        assert _without_ends(exported(other.profile(name))) == _without_ends(data)


def _without_ends(data: bytes) -> list[bytes]:
    """A last line tells of an inbox, which no import has. Order is the store's own."""
    kept = [line for line in lines(data) if b'{"type":"end"' not in line]
    return sorted(kept)


def test_the_profile_is_that_of_the_import(files: tuple[clew.Store, clew.Store]) -> None:
    one, other = files
    one.profile("a").create(id="x").append([clew.user("hello")])
    brought(other.profile("b"), exported(one.profile("a")))
    assert other.profiles() == (("b", 1),)
    assert other.profile("b").open("x").info().profile == "b"


def test_b86_a_line_is_a_line_to_every_reader(files: tuple[clew.Store, clew.Store]) -> None:
    one, other = files
    one.profile("p").create(id="x", title=ODD).add({"role": "user", "content": ODD})
    data = exported(one.profile("p"))
    assert len(data.decode().splitlines()) == len(data.split(b"\n")) - 1
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in data.decode() if c != "\n")
    brought(other.profile("p"), data)
    assert other.profile("p").open("x").message(1).text == ODD


def test_records_stand_behind_what_they_need(files: tuple[clew.Store, clew.Store]) -> None:
    """Whoever stops after any line has a conversation as it was once, and goes on from there."""
    one, other = files
    fill(one)
    _more(one.profile("one"))
    data = exported(one.profile("one"))
    whole = lines(data)
    for end in range(1, len(whole)):
        brought(other.profile("one"), file_of(whole[:end]))
        if end % 7 == 0:
            assert other.verify() == []
    brought(other.profile("one"), data)
    assert rows(other, "one") == rows(one, "one")


class _Stopped(Exception):
    pass


class _Broken(io.BytesIO):
    """A stream that fails after so many bytes."""

    def __init__(self, data: bytes, after: int) -> None:
        super().__init__(data)
        self._after = after

    def readline(self, size: int | None = -1, /) -> bytes:
        if self.tell() > self._after:
            raise _Stopped
        return super().readline(size)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupted_import_goes_on(engine: str, fast_dir: Path) -> None:
    """A conversation of several transactions, stopped inside of it again and again."""
    with (
        clew.open(place("file", fast_dir, "a")) as one,
        clew.open(place(engine, fast_dir, "b")) as other,
    ):
        conv = one.profile("p").create(id="long")
        for i in range(4):
            conv.append([clew.user(f"{i}.{j}", key=f"{i}.{j}") for j in range(600)])
            conv.cut(conv.message(600 * i + 590).uid)
            conv.plan_call(clew.CallPlan(model="m"))
        data = exported(one.profile("p"))
        heads = [0]
        for part in range(1, 10):
            stream = _Broken(data, len(data) * part // 10)
            with pytest.raises(_Stopped):
                bring(other.profile("p"), stream)
            with_it = other.list_all().items
            heads.append(other.profile("p").open("long").info().head if with_it else 0)
            assert other.verify() == []
        assert heads == sorted(heads)
        assert len(set(heads)) > 3
        assert brought(other.profile("p"), data).grown == 1
        assert rows(other, "p") == rows(one, "p")


class _Twice:
    """A backend that runs each unit again after its commit, as after one that was in doubt."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def write(self, unit: Any) -> Any:
        self._backend.write(unit)
        return self._backend.write(unit)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_commit_in_doubt_is_made_once(engine: str, fast_dir: Path) -> None:
    with (
        clew.open(place("file", fast_dir, "a")) as one,
        clew.open(place(engine, fast_dir, "b")) as other,
    ):
        fill(one)
        profile = other.profile("one")
        profile._db.backend = _Twice(profile._db.backend)
        first = brought(profile, exported(one.profile("one")))
        assert rows(other, "one") == rows(one, "one")
        assert (first.new, first.messages) == (11, 28)
        conv = one.profile("one").open("twig")
        conv.append([clew.user("more")])
        conv.cut(conv.message(conv.info().head).uid)
        more = brought(profile, exported(one.profile("one")))
        assert (more.grown, more.messages) == (1, 1)
        assert rows(other, "one") == rows(one, "one")


@pytest.mark.parametrize("engine", ENGINES)
def test_two_imports_at_once_bring_everything_once(engine: str, fast_dir: Path) -> None:
    with (
        clew.open(place("file", fast_dir, "a")) as one,
        clew.open(place(engine, fast_dir, "b")) as other,
    ):
        fill(one)
        data = exported(one.profile("one"))
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: brought(other.profile("one"), data), range(4)))
        assert [again.refused for again in found] == [()] * 4
        assert rows(other, "one") == rows(one, "one")
        assert other.verify() == []


def test_a_dry_run_tells_the_same_and_writes_nothing(files: tuple[clew.Store, clew.Store]) -> None:
    one, other = files
    fill(one)
    data = exported(one.profile("one"))
    dry = brought(other.profile("one"), data, dry_run=True)
    assert other.list_all(ListFilter()).items == ()
    assert brought(other.profile("one"), data) == dry
    one.profile("one").open("branch").append([clew.user("new")])
    more = exported(one.profile("one"))
    before = rows(other, "one")
    dry = brought(other.profile("one"), more, dry_run=True)
    assert rows(other, "one") == before
    assert (dry.new, dry.grown, dry.messages) == (0, 1, 1)
    assert brought(other.profile("one"), more) == dry


def test_an_export_of_a_branch_has_what_it_goes_on_from(
    files: tuple[clew.Store, clew.Store],
) -> None:
    one, other = files
    fill(one)
    data = exported(one.profile("one"), "twig", branches=False, delegates=False)
    facts = [found for line in lines(data)[1:] if isinstance(found := decode(line), Facts)]
    assert [found.conversation for found in facts][1:] == ["branch", "twig"]
    assert brought(other.profile("one"), data).new == 3
    texts = [m.text for m in other.profile("one").open("twig").messages()]
    assert texts == [m.text for m in one.profile("one").open("twig").messages()]


def test_a_last_line_says_what_came_before(files: tuple[clew.Store, clew.Store]) -> None:
    one, _ = files
    conv = one.profile("p").create(id="x")
    conv.append([clew.user("a"), clew.user("b")])
    turn = conv.begin_turn([clew.user("c")])
    assert isinstance(turn, clew.TurnHandle)
    conv.append([clew.user("waits")])
    end = decode(lines(exported(one.profile("p")))[-1])
    assert isinstance(end, End)
    assert (end.messages, end.lines, end.waiting) == (3, 5, 1)


def test_a_branch_of_one_that_is_being_deleted(files: tuple[clew.Store, clew.Store]) -> None:
    """As it will be when the deletion is through."""
    one, other = files
    profile = one.profile("p")
    origin = profile.create(id="origin")
    begun = origin.begin_turn([clew.user("a")])
    assert isinstance(begun, clew.TurnHandle)
    begun.finish([clew.Draft(role=clew.Role.ASSISTANT, parts=(clew.Image(data=b"image"),))])
    origin.branch(new=clew.NewConversation(id="heir")).append([clew.user("its own")])
    profile._db.write(deletion.Begin(profile._db.kit, "p", "origin"))
    data = exported(profile)
    assert brought(other.profile("p"), data).new == 1
    one.maintain()
    assert rows(other, "p") == rows(one, "p")
    assert brought(other.profile("p"), exported(profile)).unchanged == 1


def test_what_was_given_is_not_given_again(files: tuple[clew.Store, clew.Store]) -> None:
    """A reader whose connection was lost is run again by the engine."""
    one, _ = files
    one.profile("p").create(id="x").append([clew.user("a")])
    given: list[object] = []
    dump = Dump(one._db.kit, "p", "x", given.append)
    one._db.read(dump)
    count = len(given)
    with pytest.raises(StoreError, match="begin the export again"):
        one._db.read(dump)
    assert len(given) == count
