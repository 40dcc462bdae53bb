"""A redacted export of a conversation that has a secret wherever one can stand."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import clew
from clew import CallPlan, CallResult, Inline, Usage
from clew.domain.parts import File, Image, Reasoning, Text, ToolCall, ToolResult, Unknown
from clew.domain.redaction import MARK, Redaction, Rules
from clew.exporters import atif, chat, clew_jsonl, html, html_index, markdown, responses
from clew.exporters.redaction import info_of, redacted
from clew.exporters.transcript import Transcript, transcript
from clew.importers.clew_jsonl import bring

KEY = "sk-proj-Ab12Cd34Ef56Gh78Ij90"
OWN = 'c0rrect "horse"'
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0B\n-----END PRIVATE KEY-----"
PIECES = (KEY, OWN, json.dumps(OWN)[1:-1], "MIIEvQIBADANBg", "kqhkiG9w0B", "hunter2", "/home/ann")
PEOPLE = ("ann@example.com", "Annika")
ALL = f"{KEY} and {OWN}, password=hunter2 in /home/ann/x of ann@example.com, {PEM}"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
RULES = Rules(secrets=(OWN,), homes=True, people=True, names=("annika",))
TEXTS: dict[str, Callable[[Transcript], Iterator[str]]] = {
    "chat": chat.text, "responses": responses.text, "atif": atif.text, "markdown": markdown.text,
    "html": html.text,
}  # fmt: skip


def _fill(profile: clew.Profile) -> clew.Conversation:
    conv = profile.create(
        title=f"About {KEY}", prompt=f"You know {ALL}", model="m", meta={"note": ALL, KEY: 1},
        workspace=clew.Workspace(cwd="/home/ann/x", git_root="/home/ann"),
        toolset=({"type": "function", "function": {"name": "t", "description": ALL}},),
    )  # fmt: skip
    turn: Any = conv.begin_turn(
        [clew.user(ALL, key=f"from {KEY}", author="Annika")],
        call=CallPlan(model="m", settings={"note": ALL}),
    )
    arguments = json.dumps({"text": ALL, "password": "hunter2", "deep": json.dumps({"x": OWN})})
    said = clew.Draft(
        role=clew.Role.ASSISTANT,
        parts=(
            Reasoning(f"Thinking of {ALL}", signature=f"sig {KEY}", data=f"{KEY}", id="r1"),
            Text(ALL), ToolCall("c1", "t", arguments, extra={"thought": KEY}),
            Unknown({"type": "odd", "note": [ALL], KEY: {"a": ALL}}),
        ),
        meta={"import": {"error": ALL, "stop_reason": KEY}},
    )  # fmt: skip
    result = ToolResult(
        "c1", (Text(ALL), Image(data=PIXEL), Image(url=f"https://h/?token={KEY}"),
               File(data=ALL.encode(), media_type="text/plain", name=f"{KEY}.txt"),
               Image(url=f"data:image/svg+xml,{KEY}", media_type="image/svg+xml")),
    )  # fmt: skip
    answers = [said, clew.Draft(role=clew.Role.TOOL, parts=(result,)), clew.assistant(ALL)]
    turn.finish(answers, call=turn.call, result=CallResult(usage=Usage(input=1), error=ALL))
    conv.set_todos([clew.Todo(ALL)])
    conv.set_goal(ALL)
    conv.append([clew.user(f"My key is {KEY[:-1]} " + "x" * 300)])
    attempt = conv.open_attempt("user")
    body = (Inline(clew.Role.USER, (Text(f"Earlier: {ALL}"),)),)
    conv.commit_attempt(attempt.number, clew.Proposal(
        covers_to=3, body=body, tokens_before=900, tokens_after=9, receipt={"note": ALL}
    ))  # fmt: skip
    conv.branch(conv.message(2).uid, new=clew.NewConversation(title=f"A branch with {OWN}"))
    return conv


@pytest.fixture
def store(tmp_path: Path) -> Iterator[clew.Store]:
    with clew.open(tmp_path / "agent.db") as store:
        yield store


@pytest.fixture
def conv(store: clew.Store) -> clew.Conversation:
    return _fill(store.profile("ann"))


def _is_clean(text: str) -> None:
    for secret in (*PIECES, *PEOPLE):
        assert secret not in text, secret
        assert json.dumps(secret)[1:-1] not in text, secret
    assert base64.b64encode(ALL.encode()).decode()[:40] not in text


@pytest.mark.parametrize("form", TEXTS)
def test_no_format_says_a_secret(conv: clew.Conversation, form: str) -> None:
    plain = "".join(TEXTS[form](transcript(conv)))
    assert KEY in plain  # the test can fail
    text = "".join(TEXTS[form](redacted(transcript(conv), Redaction(RULES))))
    _is_clean(text)
    assert MARK in text
    assert "data:image/png;base64" in text or form == "atif"
    if form in ("chat", "responses", "atif"):
        json.loads(text)


def test_titles_of_pages_say_none(conv: clew.Conversation) -> None:
    info = info_of(conv.info(), Redaction(RULES))
    _is_clean("".join(html_index.text("All", [html_index.Page(info, "a.html")])))
    assert info.id == conv.id
    assert KEY[:12] not in (info.preview or "")


def test_clews_own_format_says_none_and_comes_back(
    conv: clew.Conversation, store: clew.Store, tmp_path: Path
) -> None:
    profile, out = store.profile("ann"), io.BytesIO()
    out.write(clew_jsonl.header("ann", 0, "me", True))
    family = list(profile.transfer().family())
    clew_jsonl.write(profile, family, out.write, redaction=Redaction(RULES))
    _is_clean(out.getvalue().decode())
    with clew.open(tmp_path / "other.db") as other:
        out.seek(0)
        brought = bring(other.profile("ann"), out)
        assert (brought.damaged, brought.refused) == ((), ())
        assert brought.new == len(family) == 2
        copy: Any = other.profile("ann").open(conv.id)
        assert [m.seq for m in copy.messages()] == [m.seq for m in conv.messages()]
        assert MARK in copy.context()[0]["content"]
        assert other.verify() == []
