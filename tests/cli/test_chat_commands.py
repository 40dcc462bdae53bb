"""The commands of `clew chat`, on a real store, with a host that answers at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import clew
from clew.cli.chat.commands import registry
from clew.domain.turns import Ask

from .fake_chat import FakeChat, in_chat

TYPED = ("resume", "todo", "goal", "export", "help", "model", "retry", "tools", "compact")


def test_names_are_there_without_loading_a_command() -> None:
    listed = registry.names()
    assert {"new", "resume", "undo", "quit"} <= {name for name, _, _ in listed}
    assert all(summary.endswith(".") and len(summary) < 60 for _, _, summary in listed)
    assert len({*registry.all_names()}) == len([*registry.all_names()])


@pytest.mark.parametrize("name", registry.COMMANDS)
def test_every_command_is_there_and_says_what_it_does(name: str) -> None:
    command = registry.find(f"/{name}")
    assert command is not None
    assert (command.name, command.usage) == (name, registry.COMMANDS[name].usage)
    assert (command.complete is not None) == (name in TYPED)
    assert registry.description(name).endswith(".")


@pytest.mark.parametrize(
    ("typed", "name"),
    [("/q", "quit"), ("/exit", "quit"), ("/h", "help"), ("/?", "help"), ("/UNDO", "undo"),
     ("/mod", "model"), ("cont", "context"), ("/comp", "compact"), ("/r", "resume")],
)  # fmt: skip
def test_finding_by_alias_and_beginning(typed: str, name: str) -> None:
    command = registry.find(typed)
    assert command is not None
    assert command.name == name


def test_names_that_are_none() -> None:
    assert registry.find("/") is None
    assert registry.find("/co") is None
    assert registry.unknown("/co") == "there is no command /co; did you mean /context or /compact?"
    assert "/undo" in registry.unknown("/udno")
    assert registry.unknown("/zzz") == "there is no command /zzz; /help shows them"


def test_undo_goes_back_exchange_by_exchange_and_redo_returns(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        for text in ("one", "two"):
            await chat.say([clew.user(text)])
        assert "Took out 2 messages, from #3 on: two" in await chat.run("/undo")
        assert "one" in await chat.run("/undo")
        assert await chat.texts() == []
        assert "Nobody has said anything" in await chat.run("/undo")
        assert "#1" in await chat.run("/redo")
        assert await chat.texts() == ["one", "answer to one"]
        await chat.run("/redo")
        assert await chat.texts() == ["one", "answer to one", "two", "answer to two"]
        assert "Nothing is taken out" in await chat.run("/redo")

    in_chat(tmp_path, test)


def test_undo_takes_the_calls_of_tools_with_it(tmp_path: Path) -> None:
    """An exchange is all that came of a message: thinking, calls, results, what was cut short."""

    async def test(chat: FakeChat) -> None:
        await chat.say([clew.user("first")])
        call = clew.ToolCall("c1", "read_file", "{}")
        await chat.conv.append([
            clew.user("read it"),
            clew.Draft(role=clew.Role.ASSISTANT, parts=(call,)),
            clew.Draft(role=clew.Role.TOOL, parts=(clew.ToolResult("c1", "text"),)),
            clew.assistant("It sa", meta={"partial": True}),
        ])  # fmt: skip
        assert "Took out 4 messages" in await chat.run("/undo")
        assert len(await chat.conv.context()) == 2
        assert "tool_calls" not in json.dumps(await chat.conv.context())
        await chat.run("/redo")
        assert len(await chat.texts()) == 6

    in_chat(tmp_path, test)


def test_undo_ends_the_open_turn_and_says_so(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        turn = await chat.conv.begin_turn([clew.user("work")])
        assert isinstance(turn, clew.aio.AsyncTurn)
        await chat.conv.append([clew.user("more")])
        said = await chat.run("/undo")
        assert "Turn 1 was open; it is ended." in said
        assert "1 message that waited: withdrawn." in said
        with pytest.raises(clew.RightLost):
            await turn.finish([clew.assistant("late")])

    in_chat(tmp_path, test)


def test_redo_after_something_was_said_names_the_way(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        await chat.say([clew.user("one")])
        await chat.run("/undo")
        await chat.say([clew.user("other")])
        assert "--at-cut 1" in await chat.run("/redo")
        assert await chat.texts() == ["other", "answer to other"]

    in_chat(tmp_path, test)


def test_retry_answers_the_last_message_again(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        await chat.say([clew.user("one")])
        await chat.say([clew.user("two")])
        said = await chat.run("/retry")
        assert "in the place of #3: two" in said
        assert await chat.texts() == ["one", "answer to one", "two", "answer to two"]
        assert chat.host.asked[-1] == "go_on"
        assert "local/small" in await chat.run("/retry small")
        assert chat.host.model.name == "small"

    in_chat(tmp_path, test)


def test_edit_puts_another_message_in_its_place(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        image = clew.Image(data=b"\x89PNG", media_type="image/png")
        await chat.conv.append([
            clew.Draft(role=clew.Role.USER, parts=(clew.Text("tow"), image)), clew.assistant("?"),
        ])  # fmt: skip
        assert "Nothing was changed" in await chat.run("/edit")
        chat.typed = "two"
        await chat.run("/edit")
        assert chat.offered == ["tow", "tow"]
        assert await chat.texts() == ["two", "answer to two"]
        first = (await chat.conv.log()).items[0]
        assert isinstance(first.parts[1], clew.Image)
        assert "/retry" in await chat.run("/edit two")
        chat.typed = "  "
        assert "without text" in await chat.run("/edit")
        await chat.run("/edit three")
        assert await chat.texts() == ["three", "answer to three"]

    in_chat(tmp_path, test)


def test_a_conversation_that_changed_meanwhile_is_not_cut(tmp_path: Path) -> None:
    """Somebody writes while the person changes the text: what they wrote is not cut away."""

    async def test(chat: FakeChat) -> None:
        await chat.say([clew.user("one")])
        edit = chat.edit

        async def meanwhile(text: str) -> str | None:
            await chat.conv.append([clew.user("from elsewhere")])
            return await edit(text)

        chat.typed, chat.edit = "uno", meanwhile
        assert "changed meanwhile" in await chat.run("/edit")
        assert await chat.texts() == ["one", "answer to one", "from elsewhere"]

    in_chat(tmp_path, test)


def test_new_leaves_a_conversation_that_can_be_opened_again(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        assert "new already" in await chat.run("/new")
        await chat.say([clew.user("about pears")])
        left = chat.conv.id
        said = await chat.run("/new")
        assert f"/resume {left[:8]}" in said
        assert "about pears" in said
        assert chat.conv.id != left
        assert (await chat.conv.info()).source == "chat"
        await chat.run(f"/resume {left[:8]}")
        assert chat.conv.id == left
        assert "You are in it" in await chat.run("/resume pears")

    in_chat(tmp_path, test)


def test_resume_by_number_title_and_the_id_of_another_tool(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        assert "no other conversation" in await chat.run("/resume")
        pears = await chat.profile.create(title="Pears")
        apples = await chat.profile.create(title="Apples, red")
        more = await chat.profile.create(title="Apples, green")
        await apples.claim_alias("claude-code", "0a1b-session")
        for conv in (pears, apples, more):
            await conv.append([clew.user("x")])
        assert "Pears" in await chat.run("/resume")
        listed = await chat.run("/resume apples")
        assert "names several" in listed
        green = next(row for row in listed.splitlines() if "green" in row)
        await chat.run(f"/resume {green.split()[0]}")
        assert chat.conv.id == more.id
        await chat.run("/resume 0a1b")
        assert chat.conv.id == apples.id
        assert "No conversation has" in await chat.run("/resume plums")
        assert chat.conv.id == apples.id

    in_chat(tmp_path, test)


def test_resume_of_what_ended_is_archived_or_read_only(tmp_path: Path) -> None:
    """What takes no messages as it is takes them afterwards: the person wants to go on."""

    async def test(chat: FakeChat) -> None:
        ended, archived = await chat.profile.create(), await chat.profile.create(archived=True)
        kept = await chat.profile.create(read_only=True)
        await ended.append([clew.user("x")])
        await ended.end("idle")
        assert "open again" in await chat.run(f"/resume {ended.id}")
        await chat.say([clew.user("go on")])
        assert "archived" in await chat.run(f"/resume {archived.id}")
        await chat.say([clew.user("go on")])
        said = await chat.run(f"/resume {kept.id}")
        assert "read-only" in said
        assert chat.conv.id != kept.id
        await chat.say([clew.user("go on")])
        assert (await kept.info()).head == 0

    in_chat(tmp_path, test)


def test_branch_leaves_the_other_as_it_is(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        assert "There is nothing here to branch" in await chat.run("/branch")
        await chat.say([clew.user("one")])
        await chat.say([clew.user("two")])
        origin = chat.conv
        said = await chat.run("/branch The other way @2")
        assert "at #2" in said
        assert f"/resume {origin.id[:8]}" in said
        assert await chat.texts() == ["one", "answer to one"]
        assert (await chat.conv.info()).title == "The other way"
        assert (await origin.info()).head == 4
        await chat.run("/branch")
        assert (await chat.conv.info()).base == 2
        assert "is no number" in await chat.run("/branch @x")
        assert "99" in await chat.run("/branch @99")
        await chat.run("/undo")
        assert "--at-cut 1" in await chat.run("/branch @2")

    in_chat(tmp_path, test)


def test_title(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        assert "no title yet" in await chat.run("/title")
        await chat.say([clew.user("about pears")])
        assert "first message" in await chat.run("/title")
        await chat.conv.set_title("Fruit", "llm")
        assert await chat.run("/title Mine") == "Title: Mine"
        await chat.conv.set_title("Other fruit", "llm")
        assert await chat.run("/title") == "Mine  you gave it"
        assert await chat.run("/title -") == "Title: Other fruit"
        await chat.conv.lock_title("Locked")
        assert "is locked" in await chat.run("/title no")

    in_chat(tmp_path, test)


def test_model(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        listed = (await chat.run("/model")).splitlines()
        assert listed[0].startswith("→  local/large  100,000  $1 / $2")
        assert not listed[1].startswith("→")
        assert "local/small" in await chat.run("/model SMALL")
        assert "names several" in await chat.run("/model local")
        assert chat.host.model.name == "small"
        assert "There is no model" in await chat.run("/model huge")
        await chat.run("/model archivist")
        assert chat.host.model.provider == "archivist"

    in_chat(tmp_path, test)


def test_todo_and_goal(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        assert "empty" in await chat.run("/todo")
        await chat.run("/todo add write the test")
        await chat.run("/todo add run it")
        await chat.run("/todo start 1")
        await chat.run("/todo done 2")
        assert await chat.run("/todo") == "  1 [>] write the test\n  2 [x] run it"
        for wrong in ("done", "done 3", "done x", "add", "fly 1", "clear all"):
            before = await chat.conv.todos()
            assert "todo" in await chat.run(f"/todo {wrong}")
            assert await chat.conv.todos() == before
        await chat.run("/todo clear")
        assert await chat.conv.todos() == ()
        assert "No goal" in await chat.run("/goal")
        assert await chat.run("/goal Ship it") == "Goal: Ship it"
        assert "reached" in await chat.run("/goal done")
        assert "no goal is set" in (await chat.run("/goal clear")).lower()

    in_chat(tmp_path, test)


def test_lists_and_search(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        await chat.say([clew.user("where do pears grow")])
        other = await chat.profile.create(title="Fruit")
        await other.append([clew.user("pears and plums")])
        assert "here: " in await chat.run("/list")
        assert "Fruit" in await chat.run("/ls fru")
        assert "No title" in await chat.run("/list nothing")
        found = await chat.run("/search pears")
        assert "here" in found
        assert other.id[:8] in found
        assert "Nothing was found" in await chat.run("/search quinces")
        assert "/search WORDS" in await chat.run("/search")

    in_chat(tmp_path, test)


def test_context_and_compact(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        for i in range(40):
            await chat.conv.append(
                [clew.user(f"question {i} about {i * 'pears '}"), clew.assistant("yes " * 200)]
            )
        assert "Nothing is compacted" in await chat.run("/context")
        said = await chat.run("/compact")
        assert "Compacted" in said
        assert "/compact undo" in said
        assert "Compaction 1 stands for" in await chat.run("/context")
        assert "Undid compaction 1" in await chat.run("/compact undo")
        assert "Nothing is compacted" in await chat.run("/context")
        assert "No compaction is in effect" in await chat.run("/compact undo")
        assert "type /compact" in await chat.run("/compact all")

    in_chat(tmp_path, test)


def test_usage_and_the_cached_share(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        assert "No model was asked" in await chat.run("/usage")
        number = await chat.conv.plan_call(clew.CallPlan(model="large"))
        usage = clew.Usage(input=1000, output=50, cached=900)
        await chat.conv.finish_call(number, clew.CallResult(usage=usage, cost=0.0123))
        said = await chat.run("/usage")
        assert said.splitlines()[0] == "here  large  1  1,000  90 %  50  $0.0123"
        assert said.splitlines()[1].startswith("today")
        await chat.say([clew.user("x")])
        assert "900 of 1,000 tokens (90 %)" in await chat.run("/context")

    in_chat(tmp_path, test)


def test_tools_and_what_waits_for_a_person(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        listed = await chat.run("/tools")
        assert "git_push  git  asked about  away" in listed
        assert "Pinned 2" in await chat.run("/tools reload")
        assert "no call of git_push waits" in (await chat.run("/tools allow git_push")).lower()
        assert "There is no tool" in await chat.run("/tools deny fly")
        for wrong in ("/tools allow", "/tools show x", "/tools fly", "/tools reload now"):
            assert "type" in await chat.run(wrong)
        turn = await chat.conv.begin_turn([clew.user("push it")])
        assert isinstance(turn, clew.aio.AsyncTurn)
        call = clew.ToolCall("c1", "git_push", '{"force": true}')
        asking = clew.Draft(role=clew.Role.ASSISTANT, parts=(call,))
        await turn.record([asking], asks=[Ask("c1", "git_push")])
        await turn.wait()
        said = await chat.run("/tools allow git_push")
        assert "Allowed: git_push" in said
        assert chat.host.asked[-2:] == ["answer c1 True True", "go_on"]

    in_chat(tmp_path, test)


def test_tools_show_prints_all_of_an_answer(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        call = clew.ToolCall("c1", "read_file", "{}")
        result = clew.ToolResult("c1", "line\n" * 500)
        await chat.conv.append([
            clew.Draft(role=clew.Role.ASSISTANT, parts=(call,)),
            clew.Draft(role=clew.Role.TOOL, parts=(result,)),
        ])  # fmt: skip
        assert (await chat.run("/tools show #2")).count("line") == 500
        assert "is no answer of a tool" in await chat.run("/tools show 1")

    in_chat(tmp_path, test)


def test_turns(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        assert "No turn is running" in await chat.run("/stop")
        chat.host.running = True
        assert await chat.run("/stop") == "Stopped."
        assert "/queue TEXT" in await chat.run("/queue")
        await chat.run("/queue first")
        assert await chat.texts() == ["first", "answer to first"]
        await chat.conv.begin_turn([clew.user("work")])
        assert "For the next turn: later" in await chat.run("/queue later")
        await chat.run("/goal Ship it")
        await chat.run("/todo add test")
        said = await chat.run("/status")
        for fact in (chat.conv.id, "local/large", "Ship it", "1 of 1 open", "later", "turn 1 is"):
            assert fact in said
        await chat.run("/quit")
        assert chat.left

    in_chat(tmp_path, test)


@pytest.mark.parametrize(
    "name", ["quit", "stop", "status", "new", "undo", "redo", "usage", "context"]
)
def test_what_takes_nothing_refuses_something(tmp_path: Path, name: str) -> None:
    async def test(chat: FakeChat) -> None:
        assert f"type /{name} alone" in await chat.run(f"/{name} now")
        assert not chat.left

    in_chat(tmp_path, test)


def test_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def test(chat: FakeChat) -> None:
        await chat.say([clew.user("about pears")])
        assert "answer to about pears" in await chat.run("/export -")
        assert "Wrote " in await chat.run("/export")
        (path,) = tmp_path.glob("*.md")
        assert "about pears" in path.read_text()
        assert "exists already" in await chat.run("/export")
        await chat.run("/export html talk.html")
        assert (tmp_path / "talk.html").read_text().startswith("<!")
        await chat.run("/export all.jsonl")
        assert len((tmp_path / "all.jsonl").read_text().splitlines()) > 3
        await chat.run("/export chat -")
        await chat.run("/export md short")
        assert (tmp_path / "short").exists()
        assert "no format" in await chat.run("/export pdf")
        assert "check the path" in await chat.run(f"/export markdown {'x' * 300}")

    in_chat(tmp_path, test)


def test_help(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        said = await chat.run("/help")
        assert all(f"/{name}" in said for name in registry.COMMANDS)
        assert "/exit" in await chat.run("/help quit")
        assert "Hides your last message" in await chat.run("/help /undo")
        assert "did you mean" in await chat.run("/help udno")

    in_chat(tmp_path, test)


def test_completion(tmp_path: Path) -> None:
    async def test(chat: FakeChat) -> None:
        async def offered(name: str, typed: str) -> list[str]:
            command = registry.find(name)
            assert command is not None
            assert command.complete is not None
            return [*await command.complete(chat, typed)]

        assert chat.conv.id[:8] in await offered("resume", "")
        assert await offered("model", "lar") == ["local/large"]
        assert await offered("retry", "arch") == ["archivist"]
        assert await offered("export", "ht") == ["html"]
        assert await offered("help", "und") == ["undo"]
        assert await offered("todo", "d") == ["done", "drop"]
        assert await offered("goal", "") == ["done", "clear"]
        assert await offered("compact", "u") == ["undo"]
        assert await offered("tools", "al") == ["allow"]
        assert await offered("tools", "allow git") == ["allow git_push"]

    in_chat(tmp_path, test)
