"""The Responses API: the input items of a request, of any log."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter
from saying import assistant, call, no_blob, read, result, said, user

from clew.context.entries import Entry, entry_of, joined
from clew.context.responses import responses_items
from clew.domain.messages import Message, Role
from clew.domain.parts import Image, Part, Reasoning, Text, ToolResult, Unknown
from renderings import check_responses
from strategies.render import logs

ITEMS: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])
OPAQUE = Reasoning("hm", "A", data="opaque", id="rs_1")


def items(*entries: Entry, model: str | None = "A") -> list[dict[str, Any]]:
    found = responses_items(entries, no_blob, model)
    check_responses(found)
    return found


def kinds(*entries: Entry, model: str | None = "A") -> list[str]:
    return [item["type"] for item in items(*entries, model=model)]


@given(logs())
def test_the_types_of_openai_take_any_log(log: tuple[Message, ...]) -> None:
    read(ITEMS.validate_python(responses_items(joined(map(entry_of, log)), no_blob, None)))


def test_a_plain_talk() -> None:
    found = items(
        user("go"), assistant(OPAQUE, "I look.", call("c1"), call("c2", kind="custom")),
        result("c2", "2"), result("c1", (Text("1"), Image(url="https://x/y"))),
    )  # fmt: skip
    assert [item["type"] for item in found] == [
        "message", "reasoning", "message", "function_call", "custom_tool_call",
        "custom_tool_call_output", "function_call_output",
    ]  # fmt: skip
    assert found[0] == {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}],
    }  # fmt: skip
    assert found[1] == {
        "type": "reasoning", "id": "rs_1", "encrypted_content": "opaque",
        "summary": [{"type": "summary_text", "text": "hm"}],
    }  # fmt: skip
    assert found[5]["output"] == "2"
    assert [piece["type"] for piece in found[6]["output"]] == ["input_text", "input_image"]


def test_reasoning_goes_to_its_model_as_it_was_encrypted() -> None:
    assert kinds(assistant(OPAQUE, "x")) == ["reasoning", "message"]
    assert kinds(assistant(OPAQUE, "x"), model="B") == ["message"]
    plain: tuple[Part, ...] = (Reasoning("hm", "A"), Reasoning("hm", "A", signature="s", data="d"))
    assert kinds(assistant(*plain, "x")) == ["message"]


def test_reasoning_that_nothing_came_of_is_left_out() -> None:
    """The API refuses it without the item that followed."""
    assert kinds(user("a"), assistant(OPAQUE), user("b")) == ["message", "message"]
    assert kinds(assistant("x", OPAQUE)) == ["message"]
    assert kinds(assistant(OPAQUE), assistant(call("c"))) == [
        "reasoning", "function_call", "function_call_output",
    ]  # fmt: skip


def test_an_item_is_sent_once() -> None:
    assert kinds(assistant(OPAQUE, "x"), user("y"), assistant(OPAQUE, "z")) == [
        "reasoning", "message", "message", "message",
    ]  # fmt: skip


def test_ids_of_calls_are_unique() -> None:
    found = items(assistant(call("a"), call("a")), result("a", "1"), result("a", "2"))
    assert [(i["call_id"], i.get("output")) for i in found] == [
        ("a", None), ("a_2", None), ("a", "1"), ("a_2", "2"),
    ]  # fmt: skip


def test_items_of_unknown_kinds_stay_in_pairs() -> None:
    search = Unknown({"type": "web_search_call", "id": "ws_1", "status": "completed"})
    shell = Unknown({"type": "local_shell_call", "call_id": "s", "id": "l"})
    done = Unknown({"type": "local_shell_call_output", "call_id": "s", "output": "x"})
    assert kinds(assistant(search, shell), assistant(done)) == [
        "web_search_call", "local_shell_call", "local_shell_call_output",
    ]  # fmt: skip
    assert kinds(assistant(search, shell)) == ["web_search_call"]
    assert kinds(assistant(done), user("x")) == ["message"]


def test_a_refusal_and_blank_text() -> None:
    refusal = Unknown({"type": "refusal", "refusal": "no"})
    found = items(user(""), assistant("", refusal), said(Role.TOOL, ToolResult("gone", "x")))
    assert [item["content"] for item in found] == [[{"type": "refusal", "refusal": "no"}]]


def test_what_the_assistant_drew_is_named() -> None:
    """The API has no message of an assistant with images."""
    (message,) = items(assistant("see", Image(url="https://x/y")))
    assert [piece["type"] for piece in message["content"]] == ["output_text", "output_text"]
    assert message["content"][1]["text"] == "[image image/png]"


def test_system_text_stays_where_it_is() -> None:
    found = items(user("a"), said(Role.DEVELOPER, Text("be brief")), user("b"))
    assert [item["role"] for item in found] == ["user", "developer", "user"]


def test_messages_that_no_log_holds_have_ids_of_their_own() -> None:
    ids = [item["id"] for item in items(assistant("a"), assistant("b"))]
    assert len(set(ids)) == 2
