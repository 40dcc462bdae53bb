"""Chat Completions: the messages of a request, of any log."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter
from saying import PNG, assistant, call, no_blob, read, result, said, user

from clew.context.chat import RETURNED, UNANSWERED, chat_messages
from clew.context.entries import Entry, entry_of, joined
from clew.context.wire import CONTINUES, INTERRUPTED
from clew.domain.chat import draft_of
from clew.domain.messages import Message, Role
from clew.domain.parts import File, Image, Reasoning, Text, ToolResult, Unknown
from renderings import check_chat
from strategies.render import logs

CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
PNG_URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"


def given_as(message: dict[str, Any]) -> Entry:
    draft = draft_of(message)
    return Entry(draft.role, draft.parts, draft.author, draft.meta)


def messages(
    *entries: Entry, prompt: str | None = None, model: str | None = None, alternate: bool = False
) -> list[dict[str, Any]]:
    found = chat_messages(prompt, entries, no_blob, model, alternate)
    check_chat(found, alternate)
    return found


@given(logs())
def test_the_types_of_openai_take_any_log(log: tuple[Message, ...]) -> None:
    entries = list(joined(map(entry_of, log)))
    for alternate in (False, True):
        found = chat_messages(None, entries, no_blob, None, alternate)
        read(CHAT.validate_python(found))


def test_a_plain_talk_is_what_it_was() -> None:
    found = messages(user("go"), assistant("I look.", call("c1")), result("c1"), assistant("done"),
                     prompt="Be brief.")  # fmt: skip
    assert found == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "run", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "assistant", "content": "done"},
    ]  # fmt: skip


def test_an_interrupted_call_is_answered_in_the_rendering() -> None:
    found = messages(user("go"), assistant(call("a"), call("b")), result("b"), user("stop"))
    assert [m.get("tool_call_id", m["role"]) for m in found] == [
        "user", "assistant", "b", "a", "user",
    ]  # fmt: skip
    assert found[3]["content"] == INTERRUPTED


@pytest.mark.parametrize(
    ("given_ids", "ids"),
    [
        (["a", "a"], ["a", "a_2"]), (["", ""], ["call", "call_2"]),
        (["a.b", "a_b"], ["a_b", "a_b_2"]), (["a_2", "a", "a"], ["a_2", "a", "a_3"]),
        (["x" * 99, "x" * 98], ["x" * 40, "x" * 38 + "_2"]), (["ü"], ["_"]),
    ],
    ids=str,
)  # fmt: skip
def test_ids_are_unique_and_of_allowed_characters(given_ids: list[str], ids: list[str]) -> None:
    """One message after the other, and all at once."""
    one_by_one = [entry for id in given_ids for entry in (assistant(call(id)), result(id, id))]
    at_once = [assistant(*map(call, given_ids)), *(result(id, id) for id in given_ids)]
    for entries in (one_by_one, at_once):
        found = messages(user("go"), *entries)
        assert [c["id"] for m in found for c in m.get("tool_calls", ())] == ids
        answers = [(m["tool_call_id"], m["content"]) for m in found if m["role"] == "tool"]
        assert answers == list(zip(ids, given_ids, strict=True))


def test_names_and_arguments_are_such_as_providers_take() -> None:
    (first, second) = (m for m in messages(
        assistant(call("a", "fs.read", "")), assistant(call("b", "", "not json"))
    ) if m["role"] == "assistant")  # fmt: skip
    assert first["tool_calls"][0]["function"] == {"name": "fs_read", "arguments": "{}"}
    assert second["tool_calls"][0]["function"] == {"name": "unknown", "arguments": "not json"}


def test_images_that_tools_returned_follow_all_results_of_the_step() -> None:
    found = messages(
        user("look"), assistant(call("a"), call("b")),
        result("a", (Text("seen"), Image(data=PNG))), result("b"), user("and?"),
    )  # fmt: skip
    assert [m["role"] for m in found] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert found[2]["content"][1] == {"type": "text", "text": "[image image/png]"}
    assert found[4]["content"] == [
        {"type": "text", "text": RETURNED},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
    ]
    assert found[-1]["content"] == "and?"


def test_images_elsewhere_or_without_bytes_are_named() -> None:
    gone = Image(hash="0" * 64, size=7)
    found = messages(user("x", gone), assistant("see", Image(url="https://x/y")),
                     said(Role.SYSTEM, File(name="a.txt", data=b"x")))  # fmt: skip
    assert found[0]["content"][1]["text"] == "[image image/png 7 bytes]"
    assert found[1]["content"][1]["text"] == "[image image/png]"
    assert found[2]["content"] == "[file a.txt application/octet-stream]"


def test_pieces_of_other_apis_are_what_they_mean() -> None:
    body = base64.b64encode(PNG).decode()
    source = {"type": "base64", "media_type": "image/png", "data": body}
    pieces = (
        {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": source},
        {"type": "image", "mimeType": "image/png", "data": body},
        {"type": "input_image", "image_url": PNG_URL, "detail": "auto"},
        {"type": "image", "source": {"type": "url", "url": "https://x/y"}},
    )  # fmt: skip
    (message,) = messages(user(*map(Unknown, pieces)))
    assert message["content"][0] == {"type": "text", "text": "hi"}
    urls = [piece["image_url"]["url"] for piece in message["content"][1:]]
    assert urls == [PNG_URL] * 3 + ["https://x/y"]


def test_bytes_in_pieces_that_nothing_knows_are_named() -> None:
    body = base64.b64encode(b"\0\1\2" * 400).decode()
    (message,) = messages(user(Unknown({"type": "odd", "at": [1, {"data": body}]}), "x"))
    text = message["content"][0]["text"]
    assert '"odd"' in text
    assert "[file" in text
    assert len(text) < 200


def test_what_says_nothing_is_left_out() -> None:
    found = messages(
        user("a"), assistant(""), assistant(Reasoning("hm")), said(Role.SYSTEM), user("")
    )
    assert [m["content"] for m in found] == ["a", ""]


def test_thinking_goes_to_its_model() -> None:
    parts = (Reasoning("A's", model="A"), Reasoning("whose?"), Text("x"))
    assert messages(assistant(*parts), model="A")[0]["reasoning_content"] == "A'swhose?"
    assert messages(assistant(*parts), model="B")[0]["reasoning_content"] == "whose?"


def test_calls_of_the_old_form_become_tool_calls() -> None:
    old = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    found = messages(*map(given_as, (
        {"role": "user", "content": "go"}, old, {"role": "function", "name": "f", "content": "1"},
        old, {"role": "user", "content": "more"}, {"role": "function", "name": "g", "content": "2"},
    )))  # fmt: skip
    assert [m["role"] for m in found] == ["user", *["assistant", "tool"] * 2, "user"]
    assert [m["content"] for m in found if m["role"] == "tool"] == ["1", INTERRUPTED]
    assert not [m for m in found if "function_call" in m]


def test_a_refusal_is_said() -> None:
    (message,) = messages(given_as({"role": "assistant", "content": None, "refusal": "no"}))
    assert message["content"] == [{"type": "refusal", "refusal": "no"}]


def test_parts_in_places_where_no_provider_takes_them() -> None:
    found = messages(
        user("go"), assistant(call("a"), ToolResult("a", "inside")),
        said(Role.USER, ToolResult("x", "of nobody"), call("b"), Text("next")),
        assistant(call("c")), said(Role.TOOL, ToolResult("c", "1"), Text("beside")),
    )  # fmt: skip
    assert [m["role"] for m in found] == [
        "user",
        *["assistant", "tool", "user"],
        "assistant",
        "tool",
    ]
    assert found[2]["content"] == "inside"
    assert "tool_call" in found[3]["content"][0]["text"]
    assert found[5]["content"] == [
        {"type": "text", "text": "1"},
        {"type": "text", "text": "beside"},
    ]


def test_lone_surrogates_cannot_be_sent() -> None:
    found = messages(user("a\ud83d b\ud83d\ude00"), assistant(call("c", arguments='"\udc00"')))
    assert found[0]["content"] == "a\ufffd b\U0001f600"
    assert found[1]["tool_calls"][0]["function"]["arguments"] == '"\ufffd"'


def test_names_of_speakers_are_such_as_the_api_takes() -> None:
    found = messages(user("x", author="Ada L./"), user("y", author="  "))
    assert [m.get("name") for m in found] == ["Ada_L._", "_"]


# ---------------------------------------------------------------------- strict turns


def test_strict_turns() -> None:
    found = messages(
        said(Role.SYSTEM, Text("More.")), assistant("hello"), assistant("there"), user("a"),
        said(Role.DEVELOPER, Text("be brief")), user("b"), assistant(call("c")), result("c"),
        user("d"), prompt="Be exact.", alternate=True,
    )  # fmt: skip
    assert found[0] == {"role": "system", "content": "Be exact.\n\nMore."}
    assert found[1] == {"role": "user", "content": CONTINUES}
    assert [piece["text"] for piece in found[2]["content"]] == ["hello", "there"]
    assert [piece["text"] for piece in found[3]["content"]] == [
        "a", "<system>\nbe brief\n</system>", "b",
    ]  # fmt: skip
    assert [m["role"] for m in found[4:]] == ["assistant", "tool", "assistant", "user"]
    assert found[6]["content"] == UNANSWERED
    assert found[7]["content"] == "d"


def test_strict_turns_of_nothing() -> None:
    assert messages(alternate=True) == []
    assert messages(user(" "), assistant(""), alternate=True) == []
    assert messages(said(Role.SYSTEM, Text("x")), alternate=True) == [
        {"role": "system", "content": "x"}
    ]
