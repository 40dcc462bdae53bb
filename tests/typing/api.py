"""The public API as a type checker sees it: pyright accepts this file under strict, and it runs.

What must be an error is marked so; pyright complains about a mark that marks nothing.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, assert_type

import clew
import clew.aio


def own_loop(store: clew.Store) -> None:
    conv = assert_type(store.profile("me").conversation("support-42"), clew.Conversation)
    appended = assert_type(conv.add({"role": "user", "content": "hi"}), clew.Appended)
    assert_type(appended.seqs, tuple[int, ...])
    assert_type(conv.context("a-model"), list[dict[str, Any]])
    assert_type(conv.add([clew.assistant("hello", key="k-1"), clew.user("more")]), clew.Appended)
    assert_type(conv.replace([{"role": "user", "content": "hi"}]), clew.Appended)
    assert_type(conv.pop(2), list[clew.Message])


def turns(conv: clew.Conversation) -> None:
    begun = conv.begin_turn([clew.user("go")], call=clew.CallPlan(model="a-model"))
    match begun:
        case clew.TurnHandle():
            result = clew.CallResult(usage=clew.Usage(input=12, output=3), cost=0.01)
            call = clew.ToolCall("call-1", "look", '{"at": 1}')
            draft = clew.Draft(role=clew.Role.ASSISTANT, parts=(clew.Text("see"), call))
            recorded = begun.record([draft], call=begun.call, result=result, take_inbox=True)
            assert_type(recorded.taken, tuple[int, ...])
            answer = clew.ToolResult(
                "call-1", (clew.Text("seen"), clew.Image(url="https://x/y.png"))
            )
            begun.record([clew.Draft(role=clew.Role.TOOL, parts=(answer,))])
            ended = begun.finish(deliveries=[clew.Delivery("route", {"text": "see"})])
            assert_type(ended, clew.TurnEnded)
        case clew.TurnQueued() | clew.TurnKnown():
            assert_type(begun.appended, clew.Appended)


def asking(conv: clew.Conversation) -> None:
    conv.add({"role": "user", "content": "push it"})
    turn = conv.begin_turn(head=conv.info().head, call=clew.CallPlan(model="a-model"))
    assert isinstance(turn, clew.TurnHandle)
    call = clew.ToolCall("call-1", "git_push", "{}")
    made = clew.CallResult(expected=9, generation=0, up_to_seq=1, prefix_hash="ab")
    turn.record(
        [clew.Draft(role=clew.Role.ASSISTANT, parts=(call,))],
        call=turn.call, result=made, asks=[clew.Ask("call-1", "git_push")],
    )  # fmt: skip
    assert_type(conv.answer_call("call-1", True, always=True, by="Ada"), bool)
    for row in assert_type(conv.approvals(), tuple[clew.Approval, ...]):
        assert_type((row.by, row.answered_at), tuple[str | None, int | None])
    assert_type(conv.allowed_tools(), tuple[str, ...])
    turn.record(started=["call-1"])
    cut = clew.ToolResult("call-1", "a long text", shown=4)
    turn.record([clew.Draft(role=clew.Role.TOOL, parts=(cut,))])
    turn.finish([clew.assistant("done")], deliveries=[clew.Delivery("web:1", "done")])
    assert_type(conv.calls()[0].prefix_hash, str | None)


def sending(profile: clew.Profile) -> None:
    received = profile.receive(
        "route", [clew.user("hi")], source="web", account="bot", key="1", wait=True
    )
    assert_type(received.appended, clew.Appended | None)
    taken = profile.take_delivery("web:")
    assert taken is not None
    assert_type(taken.key, str)
    assert_type(profile.settle_delivery(taken, "gone", give_up=True), clew.Delivered | None)
    assert_type(profile.deliveries("failed"), tuple[clew.Delivered, ...])
    rows = assert_type(profile.usage_by("time", since=0), tuple[clew.UsageRow, ...])
    assert_type([row.usage for row in rows], list[clew.Usage])
    assert_type(profile.clock.now(), int)


def reading(conv: clew.Conversation) -> None:
    page = assert_type(conv.log(limit=10, order="newest"), clew.Page[clew.Message])
    assert_type(page.next, str | None)
    assert_type(conv.messages(), Iterator[clew.Message])
    message = assert_type(conv.message(1), clew.Message)
    assert_type(message.parts, clew.Parts)
    for part in message.parts:
        match part:
            case clew.Text(text) | clew.Reasoning(text):
                assert_type(text, str)
            case clew.ToolCall(id=call_id) | clew.ToolResult(call_id=call_id):
                assert_type(call_id, str)
            case clew.Image(hash=digest) | clew.File(hash=digest):
                assert_type(conv.blob(digest) if digest else None, bytes | None)
            case clew.Unknown(value):
                assert_type(value, Any)
    frozen = assert_type(conv.snapshot(1), clew.ConversationReader)
    assert_type(frozen.context_inputs().compaction, clew.Compaction | None)


def editing(conv: clew.Conversation) -> None:
    info = assert_type(conv.info(), clew.ConversationInfo)
    conv.append([clew.user("one"), clew.user("two")], head=info.head)
    outcome = assert_type(conv.cut(conv.message(1).uid), clew.CutOutcome)
    assert_type(conv.undo_cut(outcome.number), clew.CutOutcome)
    assert_type(conv.branch(at_cut=outcome.number), clew.Conversation)
    assert_type(conv.delegate(clew.NewConversation(title="a helper")), clew.Conversation)
    proposal = clew.Proposal(
        covers_to=1, body=(clew.Ref(1, 1), clew.Stub(1, "short")), tokens_before=9, tokens_after=3
    )
    attempt = assert_type(conv.open_attempt("user", model="a-model"), clew.Attempt)
    try:
        assert_type(conv.commit_attempt(attempt.number, proposal), clew.Compaction)
    except clew.InvalidCompaction as error:
        assert_type(error.retryable, bool)


def many(profile: clew.Profile) -> None:
    want = clew.ListFilter(source="api", pinned=False)
    for info in assert_type(profile.list(want), clew.Page[clew.ConversationSummary]).items:
        assert_type(info.title, str | None)
    found = profile.search(clew.SearchQuery(text="hi", role=clew.Role.USER, order="relevance"))
    assert_type(found.hits, tuple[clew.Hit, ...])
    mark, changes = profile.changes(profile.mark())
    assert_type((mark, changes), tuple[clew.Mark, list[clew.Change]])
    assert_type(profile.follow(since=mark), Iterator[clew.Change])
    assert_type(profile.stats().sources, tuple[tuple[str, int, int], ...])
    try:
        profile.resolve("nothing")
    except clew.Ambiguous as error:
        assert_type(error.candidates, tuple[str, ...])
    except clew.NotFound as error:
        assert_type(error.name, str)


async def awaited(path: Path) -> None:
    async with clew.aio.open(path, limits=clew.Limits(page=50)) as store:
        assert_type(store, clew.aio.AsyncStore)
        conv = await store.profile("me").conversation("support-43")
        assert_type(conv, clew.aio.AsyncConversation)
        assert_type(await conv.add({"role": "user", "content": "hi"}), clew.Appended)
        assert_type(await conv.context(), list[dict[str, Any]])
        assert_type(conv.messages(), AsyncIterator[clew.Message])
        assert_type(await conv.snapshot(), clew.aio.AsyncConversationReader)
        assert_type(await conv.branch(), clew.aio.AsyncConversation)
        begun = await conv.begin_turn([clew.user("go")])
        if isinstance(begun, clew.aio.AsyncTurn):
            assert_type(await begun.record(started=["none"]), clew.Recorded)
            assert_type(await begun.finish(), clew.TurnEnded)
        assert_type(await conv.approvals(), tuple[clew.Approval, ...])
        assert_type(await store.profile("me").take_delivery(), clew.Delivered | None)
        assert_type(await store.profile("me").usage_by("model"), tuple[clew.UsageRow, ...])
        assert_type(await store.verify(), list[clew.Problem])
    again = assert_type(await clew.aio.open(path), clew.aio.AsyncStore)
    await again.close()


def refused(store: clew.Store, reader: clew.ConversationReader, conv: clew.Conversation) -> None:
    """Never called: what a type checker must not let through."""
    store.profile()  # pyright: ignore[reportCallIssue]
    reader.append  # pyright: ignore  # noqa: B018
    conv.append(["hi"])  # pyright: ignore[reportArgumentType]
    conv.info().title = "new"  # pyright: ignore[reportAttributeAccessIssue]


async def refused_awaited(conv: clew.aio.AsyncConversation) -> None:
    """Never called."""
    (await conv.snapshot()).cut  # pyright: ignore  # noqa: B018
    conv.info().title  # pyright: ignore  # noqa: B018


def main(folder: Path) -> None:
    with clew.open(folder / "store.db") as store:
        profile = assert_type(store.profile("me"), clew.Profile)
        own_loop(store)
        turns(profile.create(title="turns"))
        profile.take_delivery("route")
        asking(profile.create())
        sending(profile)
        reading(profile.conversation("support-42"))
        editing(profile.create(workspace=clew.Workspace(cwd="/tmp")))
        many(profile)
        assert_type(store.verify(), list[clew.Problem])
    asyncio.run(awaited(folder / "store.db"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
