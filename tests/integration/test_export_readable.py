"""Exports for other tools are told by their content, and read again: the same messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.exporters import atif, chat, responses
from clew.exporters.transcript import Transcript, transcript
from clew.importers.bring import import_paths
from clew.importers.probe import probe
from clew.importers.registry import format_of
from clew.importers.source import Source

TRANSCRIPTS = Path(__file__).parent.parent / "data" / "transcripts"
FORMS: dict[str, tuple[Callable[[Transcript], Iterator[str]], str]] = {
    "openai-chat": (chat.text, "messages"), "openai-responses": (responses.text, "input"),
    "atif": (atif.text, "steps"),
}  # fmt: skip
LONG = "x" * 100_000
"""More than a first look at a file sees."""


def _odd(profile: clew.Profile) -> None:
    """Conversations whose files have unlike beginnings."""
    profile.create(id="one").append([clew.user("only this")])
    profile.create(id="two").append([clew.user("a"), clew.assistant("b")])
    tools = ({"type": "function", "function": {"name": "f", "description": LONG}},)
    long = profile.create(id="long", model="m", prompt=LONG, toolset=tools)
    long.append([clew.user(LONG), clew.assistant("b"), clew.user(LONG)])
    talk = profile.create(id="talk", model="m", prompt="Be brief.\n{")
    call = clew.ToolCall("c1", "look", '{"at": "x"}')
    talk.append([
        clew.user("{\n{"),
        clew.Draft(role=clew.Role.ASSISTANT, parts=(clew.Text("I look."), call)),
        clew.Draft(role=clew.Role.TOOL, parts=(clew.ToolResult("c1", "seen \ud83d"),)),
        clew.assistant("Done."),
    ])  # fmt: skip


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Transcript]]:
    with clew.open(tmp_path_factory.mktemp("readable") / "a.db") as store:
        profile = store.profile("p")
        _odd(profile)
        import_paths(profile, TRANSCRIPTS)
        found = {id: transcript(profile.open(id)) for id in profile.transfer().family()}
        assert len(found) > 40
        yield {id: source for id, source in found.items() if source.info.message_count}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_told_and_read_again(
    sources: dict[str, Transcript], fast_dir: Path, form: str
) -> None:
    text, name = FORMS[form]
    with clew.open(fast_dir / "b.db") as store:
        for number, source in enumerate(sources.values()):
            file = fast_dir / f"{form}-{number}.json"
            file.write_text("".join(text(source)), "utf-8")
            told = format_of(probe(Source(file)))
            assert told is not None
            assert told.name == form
            profile = store.profile(f"p{number}")
            totals = import_paths(profile, file).totals
            assert (totals.conversations, totals.damaged, totals.failed) == (1, 0, 0)
            (info,) = profile.list().items
            _check(form, json.loads(file.read_text("utf-8"))[name], profile.open(info.id))


def _check(form: str, said: list[dict[str, Any]], found: clew.Conversation) -> None:
    """Messages and items one by one; of ATIF, whose steps hold several, what they say."""
    texts = [message.text for message in found.messages()]
    match form:
        case "openai-chat":
            roles = [str(message.role) for message in found.messages()]
            assert roles == [message["role"] for message in said]
            wanted = [message["content"] for message in said if message["role"] != "tool"]
        case "openai-responses":
            assert len(texts) >= len([item for item in said if item["type"] == "message"])
            wanted = [item["content"] for item in said if item["type"] == "message"]
        case _:
            wanted = [step["message"] for step in said]
    whole = "\n".join(texts)
    for content in wanted:
        pieces = content if isinstance(content, list) else [{"text": content or ""}]
        for piece in pieces:
            assert piece.get("text", "") in whole


def test_what_was_said_is_the_same_after_both_ways(
    sources: dict[str, Transcript], fast_dir: Path
) -> None:
    for form, (text, _) in FORMS.items():
        file = fast_dir / f"{form}.json"
        file.write_text("".join(text(sources["talk"])), "utf-8")
        with clew.open(fast_dir / f"{form}.db") as store:
            profile = store.profile("p")
            import_paths(profile, file)
            (info,) = profile.list().items
            messages = [m for m in profile.open(info.id).messages() if m.role != "system"]
            spoken = [(str(m.role), m.text) for m in messages if m.text and m.role != "tool"]
            assert spoken == [("user", "{\n{"), ("assistant", "I look."), ("assistant", "Done.")]
            calls = [part for m in messages for part in m.parts if isinstance(part, clew.ToolCall)]
            assert [(call.id, call.name) for call in calls] == [("c1", "look")]
            results = [p for m in messages for p in m.parts if isinstance(p, clew.ToolResult)]
            assert [(result.call_id, result.content) for result in results] == [
                ("c1", "seen \ufffd")
            ]
