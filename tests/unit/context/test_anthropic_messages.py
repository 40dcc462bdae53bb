"""Anthropic Messages: the messages of a request, of any log."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from saying import PNG, assistant, call, no_blob, result, said, user

from clew.context.anthropic import EMPTY_ERROR, anthropic_messages
from clew.context.entries import Entry
from clew.context.wire import CONTINUES, INTERRUPTED
from clew.domain.messages import Role
from clew.domain.parts import File, Image, Reasoning, Text, ToolResult, Unknown
from renderings import check_anthropic

SIGNED = Reasoning("hm", "A", signature="sig")
REDACTED = Reasoning(model="A", data="opaque")


def messages(*entries: Entry, model: str | None = "A") -> list[dict[str, Any]]:
    found = anthropic_messages(entries, no_blob, model)
    check_anthropic(found)
    return found


def blocks(*entries: Entry, model: str | None = "A") -> list[dict[str, Any]]:
    """Those of the last message."""
    return messages(*entries, model=model)[-1]["content"]


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_a_plain_talk() -> None:
    found = messages(user("go"), assistant(SIGNED, "I look.", call("c1", arguments='{"a": 1}')),
                     result("c1"), assistant("done"))  # fmt: skip
    assert found == [
        {"role": "user", "content": [text("go")]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"}, text("I look."),
            {"type": "tool_use", "id": "c1", "name": "run", "input": {"a": 1}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
        {"role": "assistant", "content": [text("done")]},
    ]  # fmt: skip


def test_all_results_stand_first_in_one_message_of_the_user() -> None:
    found = blocks(user("go"), assistant(call("a"), call("b")), result("b"), user("stop"),
                   result("a", "late"))  # fmt: skip
    assert [block.get("tool_use_id") for block in found] == ["b", "a", None]
    assert found[1]["content"] == "late"
    assert found[2] == text("stop")


def test_an_interrupted_call_has_a_result_that_says_so() -> None:
    (answer,) = blocks(user("go"), assistant(call("a")))
    assert (answer["content"], answer["is_error"]) == (INTERRUPTED, True)


def test_the_user_begins() -> None:
    assert messages(assistant("hi"))[0] == {"role": "user", "content": [text(CONTINUES)]}
    assert messages() == []
    assert messages(user(""), assistant(" ")) == []


def test_turns_alternate_and_system_text_is_the_users() -> None:
    found = messages(user("a"), said(Role.SYSTEM, Text("be brief")), user("b"), assistant("c"),
                     assistant("d"))  # fmt: skip
    assert [m["content"] for m in found] == [
        [text("a"), text("<system>\nbe brief\n</system>"), text("b")], [text("c"), text("d")],
    ]  # fmt: skip


def test_thinking_goes_to_the_model_that_signed_it() -> None:
    entry = assistant(SIGNED, REDACTED, Reasoning("unsigned", "A"), "x")
    assert [b["type"] for b in blocks(entry)] == ["thinking", "redacted_thinking", "text"]
    assert [b["type"] for b in blocks(entry, model="B")] == ["text"]
    of_openai = Reasoning("hm", "A", data="opaque", id="rs_1")
    assert [b["type"] for b in blocks(assistant(of_openai, "x"))] == ["text"]


def test_thinking_never_ends_a_message() -> None:
    assert messages(user("a"), assistant(SIGNED), user("b")) == [
        {"role": "user", "content": [text("a"), text("b")]}
    ]
    assert [b["type"] for b in blocks(assistant("x", SIGNED, REDACTED))] == ["text"]
    together = blocks(user("a"), assistant(SIGNED), assistant("x"))
    assert [b["type"] for b in together] == ["thinking", "text"]


def test_text_is_not_blank_and_ends_in_no_white_space() -> None:
    assert blocks(assistant(" a \n", "b \n", "\n")) == [text(" a \n"), text("b")]
    assert blocks(user("a \n", " ")) == [text("a \n")]


@pytest.mark.parametrize(
    ("arguments", "kind", "given"),
    [
        ('{"a": [1]}', "function", {"a": [1]}), ("", "function", {}),
        ("[1]", "function", {"input": "[1]"}), ("ls -l", "function", {"input": "ls -l"}),
        ('{"a": NaN}', "function", {"input": '{"a": NaN}'}),
        ("null", "function", {"input": "null"}), ('{"a": 1}', "custom", {"input": '{"a": 1}'}),
        ('{"a": "\\ud83d"}', "function", {"input": '{"a": "\\ud83d"}'}),
        ("[" * 5000, "function", {"input": "[" * 5000}),
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_arguments_are_an_object(arguments: str, kind: str, given: dict[str, Any]) -> None:
    found = messages(user("x"), assistant(call("c", arguments=arguments, kind=kind)))
    assert found[1]["content"][0]["input"] == given
    json.dumps(found)


def test_ids_have_the_allowed_characters_and_stay_apart() -> None:
    ids = ["call|fc.1", "call_fc_1", "call|fc.1"]
    rounds = [e for n, id in enumerate(ids) for e in (assistant(call(id)), result(id, str(n)))]
    found = messages(user("x"), *rounds)
    made = [b["id"] for m in found for b in m["content"] if b["type"] == "tool_use"]
    assert made == ["call_fc_1", "call_fc_1_2", "call_fc_1_3"]
    answered = [b for m in found for b in m["content"] if b["type"] == "tool_result"]
    assert [(b["tool_use_id"], b["content"]) for b in answered] == list(
        zip(made, "012", strict=True)
    )


def test_results_hold_what_the_api_takes() -> None:
    content = (Text("seen"), Text(" "), Image(data=PNG), File("application/pdf", data=b"%PDF"))
    (answer,) = blocks(assistant(call("a")), result("a", content))
    assert [block["type"] for block in answer["content"]] == ["text", "image", "document"]
    (empty,) = blocks(assistant(call("a")), result("a", ""))
    assert "content" not in empty
    (failed,) = blocks(assistant(call("a")), result("a", " ", is_error=True))
    assert failed["content"] == EMPTY_ERROR


def test_images_and_documents() -> None:
    found = blocks(user(
        Image("image/PNG", data=PNG), Image(url="https://x/y"), Image("image/tiff", data=PNG),
        Image(hash="0" * 64), File("application/pdf", "a.pdf", url="https://x/a.pdf"),
        File("text/markdown", "a.md", data="# ü".encode()),
        File("application/zip", "a.zip", data=b"PK"),
        File(file_id="file-1"),
    ))  # fmt: skip
    body = base64.b64encode(PNG).decode()
    assert found == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": body}},
        {"type": "image", "source": {"type": "url", "url": "https://x/y"}},
        text("[image image/tiff]"), text("[image image/png]"),
        {"type": "document", "source": {"type": "url", "url": "https://x/a.pdf"}, "title": "a.pdf"},
        {"type": "document", "title": "a.md",
         "source": {"type": "text", "media_type": "text/plain", "data": "# ü"}},
        text("[file a.zip application/zip]"), text("[file application/octet-stream]"),
    ]  # fmt: skip
    assert blocks(assistant("see", Image(data=PNG)))[1] == text("[image image/png]")


def test_what_clew_does_not_know_is_said_as_json() -> None:
    assert blocks(user(Unknown({"type": "odd", "n": 1}))) == [text('{"type":"odd","n":1}')]
    refusal = Unknown({"type": "refusal", "refusal": "no"})
    assert blocks(assistant(refusal)) == [text("no")]


def test_a_result_beside_words_of_a_user_is_a_result() -> None:
    """As this API itself has them."""
    found = blocks(assistant(call("a")), said(Role.USER, ToolResult("a", "1"), Text("go on")))
    assert [block["type"] for block in found] == ["tool_result", "text"]
