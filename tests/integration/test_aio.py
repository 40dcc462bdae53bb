"""The asyncio handles on a real store: many tasks, cancellation, several loops, other processes."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import clew
import clew.aio
from apart import apart
from clew.store import deletion, dictionary
from clew.store.backend import Transaction
from clew.store.opening import open_parts

PAIRS = (
    (clew.Store, clew.aio.AsyncStore),
    (clew.Profile, clew.aio.AsyncProfile),
    (clew.Conversation, clew.aio.AsyncConversation),
    (clew.ConversationReader, clew.aio.AsyncConversationReader),
    (clew.TurnHandle, clew.aio.AsyncTurn),
)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[clew.aio.AsyncStore, None]:
    """A store in which every invariant holds at the end."""
    async with clew.aio.open(path / "store.db") as store:
        yield store
        assert await store.verify() == []


class Gate:
    """A unit of work that says when it has begun and ends when it is let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, tx: Transaction) -> None:
        self.begun.set()
        assert self.go.wait(10)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


# ---------------------------------------------------------------- the same as the sync handles


def public(handle: type) -> dict[str, Any]:
    names = {"__enter__": "__aenter__", "__exit__": "__aexit__"}
    return {
        names.get(name, name): member
        for name, member in inspect.getmembers(handle)
        if not name.startswith("_") or name in names or name in names.values()
    }


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_both_kinds_of_handles_have_the_same_methods(blocking: type, awaited: type) -> None:
    there, here = public(blocking), public(awaited)
    assert there.keys() == here.keys()
    for name, method in there.items():
        if not inspect.isfunction(method):
            assert type(method) is type(here[name])
            continue
        wanted, found = inspect.signature(method), inspect.signature(here[name])
        assert [(p.name, p.kind) for p in wanted.parameters.values()] == [
            (p.name, p.kind) for p in found.parameters.values()
        ]
        for ours, theirs in zip(found.parameters.values(), wanted.parameters.values(), strict=True):
            assert ours.default == theirs.default or ours.name == "sleep"
        told = str(found.return_annotation).replace("Async", "")
        assert told == wanted.return_annotation.replace("TurnHandle", "Turn"), name
        assert inspect.getdoc(here[name]) == inspect.getdoc(method)


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_whatever_waits_is_a_coroutine(blocking: type, awaited: type) -> None:
    at_once = {"profile", "importing", "transfer"}  # handles, which do not wait
    for name, method in public(awaited).items():
        if inspect.isfunction(method):
            waits = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
            assert waits is (name not in at_once), f"{awaited.__name__}.{name}"


def test_both_kinds_give_the_same_values(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as store:
            profile = store.profile("p")
            conv = await profile.conversation("k")
            await conv.append([clew.user("one"), clew.assistant("two"), clew.user("three")])
            turn = await conv.begin_turn([clew.user("four")], call=clew.CallPlan(model="m"))
            assert isinstance(turn, clew.aio.AsyncTurn)
            assert (await conv.add({"role": "user", "content": "waits"})).queued
            result = clew.CallResult(usage=clew.Usage(input=3, output=2))
            await turn.record([clew.assistant("five")], call=turn.call, result=result)
            await turn.finish(deliveries=[clew.Delivery(route="r", payload={"a": 1})])
            await conv.cut((await conv.message(2)).uid)
            await conv.set_todos([clew.Todo(text="t", state="active")])
            await conv.set_goal("g")
            await conv.beat("me", "typing")
            await conv.claim_alias("tool", "id-1")
            await conv.branch()
            await conv.open_attempt()
            with apart(tmp_path / "store.db") as other:
                there = other.profile("p")
                same = there.open(conv.id)
                for name in (
                    "info", "log", "cuts", "compactions", "attempts", "turns", "calls", "usage",
                    "inbox", "todos", "goal", "presence", "aliases", "children", "context",
                    "context_inputs",
                ):  # fmt: skip
                    assert await getattr(conv, name)() == getattr(same, name)(), name
                assert await conv.deliveries(1) == same.deliveries(1)
                assert [m async for m in conv.messages()] == list(same.messages())
                for name in ("stats", "list", "usage", "mark"):
                    assert await getattr(profile, name)() == getattr(there, name)(), name
                assert (await profile.search("one")).hits == there.search("one").hits
                assert await store.profiles() == other.profiles() == (("p", 2),)
                assert await store.list_all() == other.list_all()

    run(test())


def test_handles_lead_to_handles_of_their_own_kind(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as store:
            conv = await store.profile("p").create(title="first")
            await conv.append([clew.user("one"), clew.assistant("two")])
            branch = await conv.branch((await conv.message(1)).uid)
            await branch.append([clew.assistant("other")])
            delegate = await conv.delegate()
            frozen = await conv.snapshot(1)
            turn = await branch.begin_turn([clew.user("go")])
            assert isinstance(turn, clew.aio.AsyncTurn)
            assert (await turn.wait()).state == "waiting"
            resumed = await branch.resume_turn()
            await resumed.renew()
            await resumed.finish()
            assert [type(handle).__name__ for handle in (branch, delegate, frozen, resumed)] == [
                "AsyncConversation", "AsyncConversation", "AsyncConversationReader", "AsyncTurn",
            ]  # fmt: skip
            assert [m.text async for m in branch.messages()] == ["one", "other", "go"]
            assert [m.text async for m in frozen.messages()] == ["one"]
            assert (await store.profile("p").resolve(conv.id[:8])).id == conv.id

    run(test())


# ---------------------------------------------------------------- many tasks, few threads


def test_64_appenders_share_commits_and_threads(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as store:
            profile = store.profile("p")
            convs = [await profile.create() for _ in range(64)]
            before = threading.active_count()

            async def append(conv: clew.aio.AsyncConversation) -> None:
                for number in range(20):
                    done = await conv.append([clew.user(f"{number}", key=f"k{number}")])
                    assert done.seqs == (number + 1,)

            await asyncio.gather(*map(append, convs))
            # One helper thread commits for all: no thread per append, nor per task.
            assert threading.active_count() <= before + 1
            for conv in convs:
                assert [m.text async for m in conv.messages()] == [str(n) for n in range(20)]

    run(test())


def test_one_that_is_refused_harms_no_other(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as store:
            conv = await store.profile("p").create()
            calls: list[Awaitable[clew.Appended]] = []
            for number in range(30):
                wrong = 99 if number % 3 == 0 else None
                calls.append(conv.append([clew.user(str(number))], head=wrong))
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            refused = [o for o in outcomes if isinstance(o, clew.Stale)]
            assert len(refused) == 10
            assert (await conv.info()).head == 20

    run(test())


def test_messages_are_read_page_by_page(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as store:
            conv = await store.profile("p").create()
            await conv.append([clew.user(str(n)) for n in range(1000)])
            await conv.append([clew.user(str(n)) for n in range(1000, 1203)])
            assert [m.seq async for m in conv.messages()] == list(range(1, 1204))

    run(test())


def test_a_dictionary_that_another_store_trained_is_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dictionary, "ENOUGH", 1500)

    async def test() -> None:
        async with opened(tmp_path) as store:
            conv = await store.profile("p").create()
            with apart(tmp_path / "store.db") as other:
                theirs = other.profile("p").open(conv.id)
                texts = [
                    f"{n} " + " ".join(f"word{n * k % 977}" for k in range(60)) for n in range(1500)
                ]
                theirs.append([clew.user(text) for text in texts[:1000]])
                theirs.append([clew.user(text) for text in texts[1000:]])
                other.maintain()
                theirs.append([clew.user(texts[7])], head=1500)
            assert (await conv.context())[-1]["content"] == texts[7]
            assert (await conv.pop())[0].text == texts[7]

    run(test())


# ---------------------------------------------------------------- cancellation


def test_cancelled_while_queued_it_is_withdrawn_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        parts = open_parts(tmp_path / "store.db", None, None, None)
        backend = parts.backend
        async with clew.aio.AsyncStore(parts) as store:
            conv = await store.profile("p").create()
            gate = Gate()
            running = asyncio.create_task(backend.write_async(gate))
            await until(gate.begun.is_set)
            append = asyncio.create_task(conv.append([clew.user("never")]))
            await asyncio.sleep(0.02)
            append.cancel()
            with pytest.raises(asyncio.CancelledError):
                await append
            assert not gate.go.is_set()  # at once: the commit before it is still under way
            gate.go.set()
            await running
            assert (await conv.info()).head == 0

    run(test())


def test_cancelled_in_a_batch_it_waits_for_the_outcome(tmp_path: Path) -> None:
    async def test() -> None:
        parts = open_parts(tmp_path / "store.db", None, None, None)
        backend = parts.backend
        async with clew.aio.AsyncStore(parts) as store:
            conv = await store.profile("p").create()
            first, second = Gate(), Gate()
            tasks = [asyncio.create_task(backend.write_async(first))]
            await until(first.begun.is_set)
            append = asyncio.create_task(conv.append([clew.user("stored")]))
            await asyncio.sleep(0.02)
            tasks.append(asyncio.create_task(backend.write_async(second)))
            await asyncio.sleep(0.02)
            first.go.set()
            await until(second.begun.is_set)  # in the same batch, behind the append
            append.cancel()
            append.cancel()
            await asyncio.sleep(0.05)
            assert not append.done()
            second.go.set()
            with pytest.raises(asyncio.CancelledError):
                await append
            await asyncio.gather(*tasks)
            assert [m.text async for m in conv.messages()] == ["stored"]

    run(test())


def test_a_cancelled_deletion_is_waited_for(tmp_path: Path) -> None:
    async def test() -> None:
        parts = open_parts(tmp_path / "store.db", None, None, None)
        backend = parts.backend
        async with clew.aio.AsyncStore(parts) as store:
            profile = store.profile("p")
            conv = await profile.create()
            await conv.append([clew.user("x")] * 1000)
            gates = [Gate(), Gate(), Gate()]
            tasks = [asyncio.create_task(backend.write_async(gates[0]))]
            await until(gates[0].begun.is_set)
            delete = asyncio.create_task(profile.delete(conv.id))
            for gate, following in pairwise(gates):
                await asyncio.sleep(0.02)
                tasks.append(asyncio.create_task(backend.write_async(following)))
                await asyncio.sleep(0.02)
                gate.go.set()
                await until(following.begun.is_set)
            await asyncio.sleep(0.05)
            # Its first step is stored; the others, in a thread, wait behind the last gate.
            delete.cancel()
            await asyncio.sleep(0.05)
            assert not delete.done()
            gates[-1].go.set()
            with pytest.raises(asyncio.CancelledError):
                await delete
            await asyncio.gather(*tasks)
            assert backend.read(deletion.pending) == []
            with pytest.raises(clew.NotFound):
                await profile.open(conv.id)

    run(test())


def test_appenders_cancelled_at_random_leave_a_whole_log(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as store:
            conv = await store.profile("p").create()
            tasks = [
                asyncio.create_task(conv.append([clew.user(str(n), key=str(n))]))
                for n in range(300)
            ]
            for n, task in enumerate(tasks):
                if n % 3 == 0:
                    await asyncio.sleep(0)
                    task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            acknowledged = {n for n, o in enumerate(outcomes) if isinstance(o, clew.Appended)}
            stored = {int(m.text) async for m in conv.messages()}
            assert acknowledged <= stored
            # Adding again what nobody was told of is harmless, stored or not.
            for n in range(300):
                await conv.append([clew.user(str(n), key=str(n))])
            assert sorted([int(m.text) async for m in conv.messages()]) == list(range(300))

    run(test())


# ---------------------------------------------------------------- loops, processes, opening


def test_several_loops_share_a_store(tmp_path: Path) -> None:
    async def opening() -> clew.aio.AsyncStore:
        return await clew.aio.open(tmp_path / "store.db")

    store = asyncio.run(opening())  # that loop is closed by now

    async def append(name: str) -> None:
        conv = await store.profile("p").conversation(name)
        await asyncio.gather(*(conv.append([clew.user(str(n))]) for n in range(50)))

    threads = [
        threading.Thread(target=lambda name=name: asyncio.run(append(name))) for name in "abc"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def look() -> None:
        for name in "abc":
            assert (await (await store.profile("p").conversation(name)).info()).head == 50
        assert await store.verify() == []
        await store.close()

    asyncio.run(look())


OTHER = textwrap.dedent(
    """
    import sys, time, clew
    with clew.open(sys.argv[1]) as store:
        conv = store.profile("p").conversation("k")
        sys.stdin.readline()
        done = conv.add({"role": "user", "content": "from outside"})
        print(done.seqs[0], time.time(), flush=True)
        sys.stdin.readline()
    """
)


def test_follow_sees_another_process_within_a_second(tmp_path: Path) -> None:
    async def test(other: subprocess.Popen[str]) -> None:
        assert other.stdin is not None
        assert other.stdout is not None
        async with opened(tmp_path) as store:
            profile = store.profile("p")
            conv = await profile.conversation("k")
            await conv.add({"role": "user", "content": "before"})
            changes = profile.follow(conv.id)
            following = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0.3)
            assert not following.done()
            other.stdin.write("\n")
            other.stdin.flush()
            change = await following
            seen = time.time()
            seq, committed = (await asyncio.to_thread(other.stdout.readline)).split()
            assert (change.kind, change.first_seq, change.last_seq) == ("appended", 2, int(seq))
            assert seen - float(committed) < 1
            following = asyncio.ensure_future(anext(changes))
            await (await profile.create()).add({"role": "user", "content": "elsewhere"})
            await conv.set_title("here")
            assert (await following).kind == "titled"

    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(tmp_path / "store.db")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as other:  # fmt: skip
        run(test(other))


def test_follow_ends_when_told_to(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as store:
            profile = store.profile("p")
            since = await profile.mark()
            conv = await profile.create()
            await conv.append([clew.user("one"), clew.user("two")])
            seen: list[clew.Change] = []
            async for change in profile.follow(since=since, until=lambda: len(seen) == 2):
                seen.append(change)
            assert {change.kind for change in seen} == {"created", "appended"}
            with pytest.raises(clew.InputError):
                await anext(profile.follow(poll=0))

    run(test())


def test_a_closed_store_refuses_and_closing_again_is_harmless(tmp_path: Path) -> None:
    async def test() -> None:
        async with clew.aio.open(tmp_path / "store.db") as store:
            conv = await store.profile("p").create()
        await store.close()
        with pytest.raises(clew.StoreClosed):
            await conv.set_title("late")
        with pytest.raises(clew.StoreClosed):
            await conv.info()

    run(test())


def test_an_opening_that_is_cancelled_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Path] = []
    close = clew.aio.AsyncStore.close

    async def noting(store: clew.aio.AsyncStore) -> None:
        await close(store)
        closed.append(store.path)

    monkeypatch.setattr(clew.aio.AsyncStore, "close", noting)

    async def test() -> None:
        opening = asyncio.ensure_future(clew.aio.open(tmp_path / "store.db"))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert closed == [tmp_path / "store.db"]

    run(test())


def test_what_cannot_be_opened_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "store.db").write_bytes(b"not a database" * 100)
        with pytest.raises(clew.StoreError, match="not a clew store"):
            async with clew.aio.open(tmp_path / "store.db"):
                pass

    run(test())
