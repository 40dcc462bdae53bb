"""A file of every format that is read, in all its forms, made of a model conversation."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

from clew.domain.messages import Role
from clew.domain.parts import Text
from clew.domain.turns import Usage
from strategies import (
    atif,
    chatgpt,
    claude_code,
    codex,
    conversations,
    gemini_cli,
    goose,
    hermes,
    langgraph,
    librechat,
    open_webui,
    openai,
    opencode,
    openhands,
    pi,
    swe_agent,
)
from strategies.conversations import (
    PNG,
    SECOND,
    Call,
    Exchange,
    Line,
    Step,
    Talk,
    said,
)


class Form(NamedTuple):
    """A form of a format."""

    name: str
    format: str
    write: Callable[[Talk, Path], Path]
    """Writes a talk into an empty folder; what is to be imported."""
    says: Callable[[Talk], list[Line]] | None = said
    """What of a talk it has; None where that is not the talk in its own words."""
    is_lines: bool = False
    """Whether it is written record by record, each on its line."""
    thinking: bool = True
    images: bool = True
    errors: bool = True
    """Whether it has a place for these."""

    def talks(self) -> st.SearchStrategy[Talk]:
        """Talks of which it has everything."""
        return conversations.talks(thinking=self.thinking, images=self.images, errors=self.errors)


def spoken_in_lists(talk: Talk) -> list[Line]:
    """In a list of items nothing is between two answers."""
    return openai.joined(said(talk))


def openhands_talk(talk: Talk) -> Talk:
    """Before version 1 a plain message has no place for thinking, nor for what it cost."""
    exchanges = tuple(
        replace(
            exchange,
            steps=tuple(
                step if step.calls else replace(step, thinking=None, usage=Usage())
                for step in exchange.steps
            ),
        )
        for exchange in talk.exchanges
    )
    return replace(talk, exchanges=exchanges)


def swe_agent_says(talk: Talk) -> list[Line]:
    """Its system prompt is a message."""
    return [(Role.SYSTEM, (Text("You fix."),)), *said(talk)]


EXAMPLE = Talk(
    id="5c0b5f0e-6a51-4b6e-9d26-0c5ad7ba2f11",
    model="model-a",
    cwd="/srv/データ",
    started=1_750_000_000 * SECOND,
    exchanges=(
        Exchange(
            "What is in here?",
            PNG + b"picture",
            (
                Step(
                    "msg_1",
                    "Let me look.",
                    "I look.",
                    (
                        Call(
                            "call_1a",
                            "list_files",
                            {"path": "src", "deep": {"n": [1, None]}},
                            "a\nb",
                        ),
                        Call("call_1b", "read", {}, "no such file", is_error=True),
                    ),
                    Usage(input=1200, output=80, cached=1000),
                ),
                Step("msg_2", None, "Two files: “a” and b.", (), Usage(input=1300, output=20)),
            ),
        ),
        Exchange("ありがとう \x1b[31m", None, (Step("msg_3", None, "どうも", (), Usage(3, 2)),)),
    ),
)
"""A talk with something of everything."""

# ---------------------------------------------------------------------- files


def _claude_code(talk: Talk, folder: Path) -> Path:
    writer = claude_code.Writer(talk, split=True, noise=True)
    for exchange in talk.exchanges:
        writer.exchange(exchange)
    return _put(folder / f"{talk.id}.jsonl", claude_code.lines(writer.rows))


def _pi(talk: Talk, folder: Path) -> Path:
    writer = pi.Writer(talk, 3)
    for exchange in talk.exchanges:
        writer.exchange(exchange)
    return _put(folder / f"2026_{talk.id}.jsonl", pi.lines(writer.rows))


def _json(value: Callable[[Talk], object], name: str) -> Callable[[Talk, Path], Path]:
    """A writer of one JSON document."""
    return lambda talk, folder: _put(folder / name, json.dumps(value(talk)).encode())


def _put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


FORMS = (
    Form("claude-code", "claude-code", _claude_code, is_lines=True),
    Form("codex", "codex", codex.write_codex, is_lines=True),
    Form(
        "codex-exec", "codex-exec", lambda t, f: codex.write_exec(t, f / "run.jsonl"),
        says=None, is_lines=True,
    ),
    Form("pi", "pi", _pi, is_lines=True),
    Form(
        "goose-lines", "goose",
        lambda t, f: _put(f / f"{t.id}.jsonl", goose.jsonl(t, goose.messages(t))), is_lines=True,
    ),
    Form(
        "goose-database", "goose",
        lambda t, f: goose.write_database(f / "sessions.db", t, goose.messages(t)),
    ),
    Form("gemini-cli", "gemini-cli", _json(gemini_cli.document, "session-x.json")),
    Form(
        "gemini-cli-lines", "gemini-cli",
        lambda t, f: _put(f / "session-x.jsonl", gemini_cli.jsonl(gemini_cli.lines(t))),
        is_lines=True,
    ),
    Form(
        "opencode-folder", "opencode",
        lambda t, f: opencode.write_folder(
            f / "storage", opencode.session(t), opencode.messages(t)
        ),
    ),
    Form(
        "opencode-database", "opencode",
        lambda t, f: opencode.write_database(
            f / "opencode.db", opencode.session(t), opencode.messages(t)
        ),
    ),
    Form(
        "openhands", "openhands", lambda t, f: openhands.write(t, f / "events.json"),
        says=lambda talk: said(openhands_talk(talk)),
    ),
    Form(
        "openhands-folder", "openhands", lambda t, f: openhands.write_new(t, f / "conversation")
    ),
    Form(
        "hermes-json", "hermes-json", lambda t, f: hermes.write_json(t, f / "session_x.json"),
        errors=False,
    ),
    Form(
        "hermes-database", "hermes", lambda t, f: hermes.write_state(t, f / "state.db"),
        errors=False,
    ),
    Form("langgraph", "langgraph", lambda t, f: langgraph.write(t, f / "checkpoints.sqlite")),
    Form(
        "openai-agents", "openai-agents", lambda t, f: openai.write_agents([t], f / "agents.db"),
        says=spoken_in_lists, errors=False,
    ),
    Form(
        "chatgpt", "chatgpt",
        lambda t, f: _put(
            f / "conversations.json", json.dumps([chatgpt.conversation(t, f)]).encode()
        ),
        says=chatgpt.lines_of,
    ),
    Form(
        "librechat-tree", "librechat",
        _json(lambda talk: librechat.conversation(talk, recursive=True), "export.json"),
        images=False, errors=False,
    ),
    Form(
        "librechat-list", "librechat",
        _json(lambda talk: librechat.conversation(talk, recursive=False), "export.json"),
        images=False, errors=False,
    ),
    Form(
        "open-webui", "open-webui", _json(lambda talk: [open_webui.row(talk)], "chats.json"),
        says=open_webui.lines_of, thinking=False,
    ),
    Form("atif", "atif", _json(atif.document, "trajectory.json"), errors=False),
    Form(
        "swe-agent", "swe-agent", lambda t, f: swe_agent.write_traj(t, f / "x.traj"),
        says=swe_agent_says, images=False, errors=False,
    ),
    Form(
        "mini-swe-agent", "mini-swe-agent", lambda t, f: swe_agent.write_mini(t, f / "x.traj.json"),
        says=swe_agent_says, images=False, errors=False,
    ),
    Form("chat-list", "openai-chat", _json(openai.chat_messages, "x.json"), errors=False),
    Form(
        "chat-lines", "openai-chat",
        lambda t, f: openai.write_lines(openai.chat_messages(t), f / "x.jsonl"),
        is_lines=True, errors=False,
    ),
    Form(
        "chat-recording", "openai-chat",
        lambda t, f: openai.write_har(t, f / "x.har", "chat", streamed=True), errors=False,
    ),
    Form(
        "responses-list", "openai-responses", _json(openai.items, "x.json"),
        says=spoken_in_lists, errors=False,
    ),
    Form(
        "responses-lines", "openai-responses",
        lambda t, f: openai.write_lines(openai.items(t), f / "x.jsonl"),
        says=spoken_in_lists, is_lines=True, errors=False,
    ),
    Form(
        "responses-recording", "openai-responses",
        lambda t, f: openai.write_har(
            t, f / "x.har", "responses", streamed=False, chained=True
        ),
        errors=False,
    ),
)  # fmt: skip
