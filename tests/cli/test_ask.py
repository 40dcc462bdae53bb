"""clew ask, with a real host and a provider that answers from a script."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import clew
import clew.cli.hosting
from clew.cli.ask_answer import Answer
from clew.cli.ask_input import asked_text, fenced, parts_of, piped_text
from clew.config.values import Config
from clew.domain.turns import Ask
from clew.host.host import Host
from clew.providers.api import Model, Price, Reply, ToolSpec
from clew.providers.errors import ServerFailed
from clew.providers.registry import Providers
from clew.store.aio.profile import AsyncProfile
from clew.testing.provider import Answer as Script
from clew.testing.provider import Hold, ScriptedProvider
from clew.tools.api import Tool, ToolCallContext, ToolOutput, Verdict
from clew.tools.toolbox import Toolbox

from .helpers import REAL, Run, process

PRICED = Model(
    name="scripted", provider="scripted", window=128_000, price=Price(input=1000, output=1000)
)
Scripted = Callable[..., ScriptedProvider]


class Push:
    """A tool that a person must allow."""

    spec = ToolSpec("git_push", "Push.", {"type": "object", "properties": {}})
    read_only = False
    default: Verdict = "ask"
    origin = "git"

    def __init__(self) -> None:
        self.calls = 0

    async def call(self, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
        self.calls += 1
        return ToolOutput("pushed")


class Git:
    """Where it comes from."""

    name = "git"

    def __init__(self, tool: Tool) -> None:
        self._tool = tool

    async def tools(self) -> Sequence[Tool]:
        return [self._tool]

    async def close(self) -> None: ...


CALL = Reply(
    parts=(clew.ToolCall("c1", "git_push", "{}"),), stop="tool_calls", usage=clew.Usage(input=100)
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No store yet, where CLEW_STORE says."""
    monkeypatch.setenv("CLEW_STORE", str(tmp_path / "clew.db"))
    return tmp_path / "clew.db"


@pytest.fixture
def push() -> Push:
    return Push()


@pytest.fixture
def scripted(store: Path, push: Push, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Have the hosts of this test answer from a script."""

    def script(*answers: Script, model: Model = PRICED) -> ScriptedProvider:
        provider = ScriptedProvider(*answers, model=model)

        def make(profile: AsyncProfile, config: Config) -> Host:
            providers = Providers(config, lambda name, section: None)
            providers.add(provider)
            toolbox = Toolbox(config.tools, config.mcpServers, sources=[Git(push)])
            return Host(profile, providers, toolbox, config)

        monkeypatch.setattr(clew.cli.hosting, "make", make)
        return provider

    return script


def only(store: Path) -> tuple[clew.ConversationSummary, ...]:
    """All conversations of the store, in which everything holds."""
    with clew.open(store) as opened:
        assert opened.verify() == []
        return opened.profile("default").list().items


def texts(store: Path, id: str) -> list[str]:
    with clew.open(store) as opened:
        return [message.text for message in opened.profile("default").open(id).messages()]


# ---------------------------------------------------------------- what is asked


def test_words_and_what_is_piped_in() -> None:
    assert asked_text(("Why", "is it?"), "") == "Why is it?"
    assert asked_text((), "one\ntwo\n") == "one\ntwo"
    assert asked_text(("Explain:",), "x = 1\n") == "Explain:\n\n```\nx = 1\n```"
    assert asked_text(("Explain:",), " \n") == "Explain:"


def test_a_fence_is_closed_by_nothing_in_it() -> None:
    assert fenced("a\n```\nb\n````\n") == "`````\na\n```\nb\n````\n\n`````"


def test_files_by_what_is_in_them(tmp_path: Path) -> None:
    text, image, pdf = (tmp_path / name for name in ("a.py", "b", "c.pdf"))
    text.write_text("x = 1\n")
    image.write_bytes(b"\x89PNG\r\n\x1a\n...")
    pdf.write_bytes(b"%PDF-1.7")
    parts = parts_of("Look", [text, image, pdf])
    assert parts[0] == clew.Text("Look\n\na.py:\n\n```\nx = 1\n```")
    assert isinstance(parts[1], clew.Image)
    assert isinstance(parts[2], clew.File)
    assert parts[2].name == "c.pdf"


def test_what_cannot_be_sent(tmp_path: Path) -> None:
    binary = tmp_path / "x.bin"
    binary.write_bytes(b"\x00\x01\xff")
    with pytest.raises(clew.InputError, match="no text in UTF-8"):
        parts_of("", [binary])
    with pytest.raises(clew.InputError, match="check --file"):
        parts_of("", [tmp_path])
    with pytest.raises(clew.InputError, match="there is no file"):
        parts_of("", [tmp_path / "none"])
    with pytest.raises(clew.InputError, match="nothing to ask"):
        parts_of("", [])
    with pytest.raises(clew.InputError, match="standard input"):
        piped_text(io.TextIOWrapper(io.BytesIO(b"\xff\xfe\xfd")))


# ---------------------------------------------------------------- answers


def test_only_the_answer_is_printed(run: Run, scripted: Scripted, store: Path) -> None:
    scripted("It is **forty-two**.")
    done = run("ask", "What", "is it?")
    assert (done.stdout, done.stderr) == ("It is **forty-two**.\n", "")
    (info,) = only(store)
    assert (info.source, info.title) == ("ask", "What is it?")
    assert texts(store, info.id) == ["What is it?", "It is **forty-two**."]


def test_what_is_piped_in_and_files_are_sent(run: Run, scripted: Scripted, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("in the file")
    provider = scripted("Fine.")
    run("ask", "Read:", "--file", tmp_path / "a.txt", input="piped\n")
    (request,) = provider.requests
    said = request.payload["messages"][-1]["content"]
    assert "Read:\n\n```\npiped\n```\n\na.txt:\n\n```\nin the file\n```" in str(said)


def test_streaming_prints_the_same(run: Run, scripted: Scripted) -> None:
    scripted("one two three")
    assert run("ask", "count", "--stream").stdout == "one two three\n"
    assert run("ask", "count", "--no-stream").stdout == "one two three\n"


def test_json(run: Run, loads: Any, scripted: Scripted, store: Path, push: Push) -> None:
    scripted(CALL, "Pushed.")
    found = loads("ask", "push it", "--allow", "git_push")
    assert found["state"] == "done"
    assert found["text"] == "Pushed."
    assert found["seqs"] == [1, 2, 3, 4]
    assert found["tool_calls"] == [
        {"id": "c1", "name": "git_push", "arguments": "{}", "error": False}
    ]
    assert (found["refused"], found["error"], found["model"]) == ([], None, "scripted")
    assert set(found["usage"]) == {"input", "output", "cached", "reasoning"}
    assert found["conversation"] == only(store)[0].id
    assert set(found) == set(Answer.__struct_fields__)
    assert push.calls == 1


def test_a_tool_that_nobody_can_allow_is_refused(
    run: Run, loads: Any, scripted: Scripted, store: Path, push: Push
) -> None:
    """The model is told, and answers; the exit code tells the script."""
    provider = scripted(CALL, "I could not push.")
    done = run("ask", "push it", code=1)
    assert done.stdout == "I could not push.\n"
    assert "git_push was refused" in done.stderr
    assert "--allow git_push" in done.stderr
    assert push.calls == 0
    assert len(provider.requests) == 2
    assert only(store)[0].turn is None


def test_without_tools(run: Run, scripted: Scripted) -> None:
    provider = scripted("Fine.")
    run("ask", "x", "--no-tools")
    offered = {each["function"]["name"] for each in provider.requests[0].payload["tools"]}
    assert offered == {
        "git_push"
    }  # of the test itself; none of clew's, none of the configuration's


def test_the_conversation_of_a_key(run: Run, scripted: Scripted, store: Path) -> None:
    provider = scripted("One.", "Two.")
    run("ask", "first", "--conversation", "nightly")
    run("ask", "second", "--conversation", "nightly")
    (info,) = only(store)
    assert texts(store, info.id) == ["first", "One.", "second", "Two."]
    assert len(provider.requests[1].payload["messages"]) == 4
    run("ask", "third", "--resume", info.id[:8])
    assert len(texts(store, info.id)) == 6
    run("ask", "x", "--resume", "nobody", code=3)
    assert "exclude" in run("ask", "x", "--resume", "a", "--conversation", "b", code=2).stderr


def test_asked_again_by_its_key_nothing_is_asked_twice(
    run: Run, scripted: Scripted, store: Path
) -> None:
    provider = scripted("One.", "Two.")
    for _ in range(3):
        assert run("ask", "first", "--key", "job-17").stdout == "One.\n"
    assert len(provider.requests) == 1
    assert len(only(store)) == 1
    assert "key" in run("ask", "other words", "--key", "job-17", code=4).stderr
    assert run("ask", "second", "--conversation", "job-17", "--key", "b").stdout == "Two.\n"


def test_a_failed_ask_is_tried_again_by_its_key(
    run: Run, scripted: Scripted, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message is not sent twice: the failed turn is followed by one that answers it."""
    failure = ServerFailed("it is down", provider="scripted")
    scripted(failure)
    (store.parent / "config.toml").write_text("[limits]\nretries = 1\n")
    monkeypatch.setenv("CLEW_CONFIG", str(store.parent / "config.toml"))
    done = run("ask", "first", "--key", "job", code=5)
    assert "it is down" in done.stderr
    assert done.stdout == ""
    scripted("Now.")
    for _ in range(2):
        assert run("ask", "first", "--key", "job").stdout == "Now.\n"
    assert texts(store, only(store)[0].id) == ["first", "Now."]


def test_a_failed_ask_that_others_have_spoken_after_is_asked_at_the_end(
    run: Run, scripted: Scripted, store: Path
) -> None:
    """Nothing of theirs is cut away."""
    scripted(Hold("so far"))
    run("ask", "first", "--key", "a", "--conversation", "k", "--timeout", "0.3", code=1)
    scripted("Theirs.")
    run("ask", "other", "--conversation", "k")
    scripted("Now.")
    for _ in range(2):
        assert run("ask", "first", "--key", "a", "--conversation", "k").stdout == "Now.\n"
    said = ["first", "so far", "other", "Theirs.", "first", "Now."]
    assert texts(store, only(store)[0].id) == said


def test_model_and_system(run: Run, scripted: Scripted, store: Path) -> None:
    provider = scripted("Fine.")
    run("ask", "x", "--conversation", "k", "--system", "Answer in Latin.")
    assert "Latin" in provider.requests[-1].payload["messages"][0]["content"]
    run("ask", "y", "--conversation", "k")
    assert "Latin" in provider.requests[-1].payload["messages"][0]["content"]
    run("ask", "z", "--conversation", "k", "--system", "Answer in Greek.")
    assert "Greek" in provider.requests[-1].payload["messages"][0]["content"]
    run("ask", "z", "--conversation", "k", "--model", "scripted/scripted")
    assert only(store)[0].model == "scripted/scripted"
    before = len(only(store))
    assert "there is no provider" in run("ask", "z", "--model", "nobody/x", code=5).stderr
    assert len(only(store)) == before


def test_a_limit_stops_it(run: Run, loads: Any, scripted: Scripted) -> None:
    scripted(CALL, "Never.")
    found = loads("ask", "x", "--max-cost", "0.0001", "--allow", "git_push", code=1)
    assert found["state"] == "failed"
    assert "turn_cost" in found["error"]
    assert found["notices"]
    scripted(CALL, "Never.")
    done = run("ask", "x", "--max-cost", "0.0001", "--allow", "git_push", code=1)
    assert done.stderr.count("turn_cost") == 1


def test_a_time_limit_stops_it_and_keeps_what_was_said(
    run: Run, loads: Any, scripted: Scripted, store: Path
) -> None:
    provider = scripted(Hold("I think ", "it is"))
    found = loads("ask", "x", "--timeout", "0.5", code=1)
    assert (found["state"], found["text"]) == ("interrupted", "I think it is")
    assert "--timeout" in found["error"]
    assert provider.open == 0
    assert only(store)[0].turn is None
    assert "is" in run("ask", "x", "--timeout", "0.5", code=1).stdout


def test_while_another_turn_runs_it_waits_for_its_own_answer(
    run: Run, scripted: Scripted, store: Path
) -> None:
    """Another process is at it: the message is queued, and answered after what runs."""
    scripted("Mine.")
    with clew.open(store) as opened:
        conv = opened.profile("default").conversation("k", source="ask")
        turn = conv.begin_turn([clew.user("theirs")])
        assert isinstance(turn, clew.TurnHandle)
        done = run("ask", "later", "--conversation", "k", "--no-wait")
        assert done.stdout == ""
        assert conv.inbox()[0].meta == {"queue": True}

        async def both() -> None:
            asking = asyncio.create_task(
                asyncio.to_thread(run, "ask", "mine", "--conversation", "k")
            )
            while len(await asyncio.to_thread(conv.inbox)) < 2:
                await asyncio.sleep(0.01)
            turn.finish([clew.assistant("Theirs.")])
            done = await asking
            assert done.stdout == "Mine.\n"
            assert "waiting" in done.stderr

        asyncio.run(both())
        assert [m.text for m in conv.messages()][:3] == ["theirs", "Theirs.", "later"]
        assert conv.inbox() == ()


def test_it_does_not_wait_for_a_person(run: Run, scripted: Scripted, store: Path) -> None:
    scripted("x")
    with clew.open(store) as opened:
        conv = opened.profile("default").conversation("k", source="ask")
        turn = conv.begin_turn([clew.user("push")])
        assert isinstance(turn, clew.TurnHandle)
        asking = clew.Draft(role=clew.Role.ASSISTANT, parts=(clew.ToolCall("c1", "git_push"),))
        turn.record([asking], asks=[Ask("c1", "git_push")])
        turn.wait()
        done = run("ask", "mine", "--conversation", "k", code=1)
        assert "waits there for a person" in done.stderr
        assert len(conv.inbox()) == 1


def test_bad_input(run: Run, scripted: Scripted) -> None:
    scripted("x")
    assert "nothing to ask" in run("ask", code=2).stderr
    assert "there is no file" in run("ask", "x", "--file", "/none", code=2).stderr
    run("ask", "x", "--timeout", "0", code=2)
    run("ask", "x", "--max-cost", "-1", code=2)


# ---------------------------------------------------------------- as a process


def test_on_a_fresh_machine_the_archivist_answers(tmp_path: Path) -> None:
    """Nothing is configured, and there is no store: it is made."""
    home = str(tmp_path / "fresh")
    done = process("ask", "--json", "Hello", CLEW_HOME=home, HOME=home, **NO_KEYS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["model"] == "archivist"
    assert "not a language model" in found["text"]


NO_KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "CLEW_STORE"), "")


def test_several_processes_ask_in_one_conversation(store: Path) -> None:
    """All are answered, each by the words of its own turn; nothing is lost or doubled."""
    asking = [
        subprocess.Popen(
            [sys.executable, "-c", REAL, "ask", f"question {i}", "--conversation", "k", "--json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **NO_KEYS, "CLEW_STORE": str(store)},
        )
        for i in range(4)
    ]  # fmt: skip
    answers: list[Any] = []
    for each in asking:
        out, err = each.communicate(timeout=90)
        assert each.returncode == 0, err
        answers.append(json.loads(out))
    (info,) = only(store)
    with clew.open(store) as opened:
        log = [*opened.profile("default").open(info.id).messages()]
    assert [m.seq for m in log] == [*range(1, len(log) + 1)]
    asked = sorted(m.text for m in log if m.role is clew.Role.USER)
    assert asked == [f"question {i}" for i in range(4)]
    turns = {m.text: m.turn for m in log if m.role is clew.Role.USER}
    for i, answer in enumerate(answers):
        assert answer["turn"] == turns[f"question {i}"]
        assert answer["state"] == "done"
        assert answer["text"] in [m.text for m in log if m.turn == answer["turn"]]


HELD = """
import sys
import clew.cli.hosting
from clew.cli.main import main
from clew.host.host import Host
from clew.providers.registry import Providers
from clew.testing.provider import Hold, ScriptedProvider
from clew.tools.toolbox import Toolbox

def make(profile, config):
    providers = Providers(config, lambda name, section: None)
    providers.add(ScriptedProvider(Hold("so far")))
    return Host(profile, providers, Toolbox(config.tools), config)

clew.cli.hosting.make = make
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_stops_the_turn_cleanly(store: Path, sent: signal.Signals, code: int) -> None:
    """What was said is kept, the conversation is free, the exit code is that of the signal."""
    asking = subprocess.Popen(
        [sys.executable, "-c", HELD, "ask", "x", "--stream", "--conversation", "k"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert asking.stdout is not None
    assert asking.stdout.read(6) == "so far"
    asking.send_signal(sent)
    out, err = asking.communicate(timeout=30)
    assert asking.returncode == code, err
    assert "Traceback" not in err
    (info,) = only(store)
    assert info.turn is None
    assert texts(store, info.id) == ["x", "so far"]
    assert out.strip() == ""


def test_killed_and_asked_again_by_its_key(run: Run, scripted: Scripted, store: Path) -> None:
    """The turn is taken up where it was left; the message is there once."""
    asking = subprocess.Popen(
        [sys.executable, "-c", HELD, "ask", "x", "--stream", "--key", "job"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert asking.stdout is not None
    assert asking.stdout.read(6) == "so far"
    asking.kill()
    asking.wait(30)
    asking.stdout.close()
    scripted("Now.")
    done = run("ask", "x", "--key", "job")
    assert (done.stdout, "left unfinished" in done.stderr) == ("Now.\n", True)
    done = run("ask", "x", "--key", "job")
    assert (done.stdout, done.stderr) == ("Now.\n", "")
    (info,) = only(store)
    assert info.turn is None
    assert [text for text in texts(store, info.id) if text != "so far"] == ["x", "Now."]


def test_a_closed_pipe_ends_it(store: Path) -> None:
    script = f"{sys.executable} -c '{REAL}' ask hello --stream </dev/null | true"
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr


def test_no_standard_input() -> None:
    """Closed by who started us."""
    assert piped_text(None) == ""


def test_a_call_that_is_made_again_is_said(run: Run, scripted: Scripted) -> None:
    """Where the answer is watched; and only what was printed counts no more."""
    failure = ServerFailed("it is down", provider="scripted", retry_after=0.01)
    scripted(failure, "There.")
    done = run("ask", "x", "--stream")
    assert done.stdout == "There.\n"
    assert "asked again: it is down" in done.stderr
    assert "counts no more" not in done.stderr


def test_streaming_prints_its_own_turn_only(run: Run, scripted: Scripted, store: Path) -> None:
    """A turn that a crash left is gone on with first; its answer is not ours."""
    scripted("Left.", "Mine.")
    with clew.open(store) as opened:
        conv = opened.profile("default").conversation("k", source="ask")
        assert isinstance(conv.begin_turn([clew.user("old")], ttl=1), clew.TurnHandle)
        done = run("ask", "new", "--conversation", "k", "--stream")
        assert done.stdout == "Mine.\n"
        assert [m.text for m in conv.messages()] == ["old", "Left.", "new", "Mine."]


def test_streaming_goes_on_after_a_tool_was_refused(run: Run, scripted: Scripted) -> None:
    says = clew.Text("I push it.")
    call = Reply(parts=(says, clew.ToolCall("c1", "git_push", "{}")), stop="tool_calls")
    scripted(call, "I could not.")
    assert run("ask", "push", "--stream", code=1).stdout == "I push it.\n\nI could not.\n"


def test_what_could_not_begin_leaves_nothing(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_CONFIG", str(store.parent / "config.toml"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (store.parent / "config.toml").write_text('model = "openai/gpt-5.4"\n')
    assert "OPENAI_API_KEY" in run("ask", "x", code=5).stderr
    assert only(store) == ()
