"""Exports for other tools: what they have to be, and that their own types accept them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import atif as validator
import pytest
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter, ValidationError
from samples import CALL, EVIL, TALK, assistant, call, info, of, result, user

import clew
from clew.exporters import atif, chat, responses
from clew.exporters.transcript import Transcript

CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
ITEMS: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])


def read(value: Any) -> None:
    """Pydantic looks at what is iterable only when it is read."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, Iterable) and not isinstance(value, str):
        for inner in value:
            read(inner)


def items(source: Transcript) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads("".join(responses.text(source)))["input"]
    read(ITEMS.validate_python(found))
    return found


def messages(source: Transcript) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads("".join(chat.text(source)))["messages"]
    read(CHAT.validate_python(found))
    return found


def trajectory(source: Transcript, *children: Transcript) -> dict[str, Any]:
    by_id = {child.info.id: child for child in children}
    text = "".join(atif.text(source, by_id.__getitem__ if children else None))
    whole = atif.trajectory(source, by_id.__getitem__ if children else None)
    assert json.loads(text) == json.loads(json.dumps(whole))
    return validator.Trajectory.model_validate_json(text).to_json_dict()


def test_chat_has_what_the_log_has() -> None:
    found = messages(of(TALK, prompt="You look."))
    assert [m["role"] for m in found] == [
        "system", "user", "assistant", "tool", "tool", "user", "system", "developer", "assistant",
        "tool", "tool", "user", "assistant", "user",
    ]  # fmt: skip
    assert [c["id"] for c in found[2]["tool_calls"]] == ["c1", "c2"]  # one api_group, one message
    assert [piece["type"] for piece in found[4]["content"]] == ["text", "text", "text"]
    assert [piece["type"] for piece in found[5]["content"]] == ["text", "image_url"]
    assert found[1]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    text = json.loads("".join(chat.text(of(TALK))))
    assert text["model"] == "gpt-5"


def test_types_would_refuse_what_is_wrong() -> None:
    """The checks of this file can fail."""
    for adapter, wrong in (
        (CHAT, {"role": "user", "content": [{"type": "bogus"}]}),
        (CHAT, {"role": "tool", "content": "x"}),
        (ITEMS, {"type": "function_call", "name": "f"}),
    ):
        with pytest.raises(ValidationError):
            read(adapter.validate_python([wrong]))


def test_chat_gives_the_tools_that_a_request_takes() -> None:
    schema = {"type": "function", "function": {"name": "f", "parameters": {}}}
    assert json.loads("".join(chat.text(of(TALK, toolset=(schema,)))))["tools"] == [schema]
    assert "tools" not in json.loads("".join(chat.text(of(TALK, toolset=({"name": "f"},)))))


def test_responses_keep_thinking_right_before_what_came_of_it() -> None:
    found = items(of(TALK, prompt="You look."))
    kinds = [item["type"] for item in found]
    assert kinds == [
        "message", "reasoning", "message", "function_call", "custom_tool_call",
        "function_call_output", "custom_tool_call_output", "message", "message", "function_call",
        "function_call_output", "function_call_output", "message", "message",
    ]  # fmt: skip
    assert found[1] | {"summary": []} == {
        "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque",
    }  # fmt: skip
    assert found[2]["content"] == [{"type": "output_text", "text": "I look.", "annotations": []}]
    assert found[4]["input"] == "ls -l"
    assert [piece["type"] for piece in found[0]["content"]] == ["input_text", "input_image"]
    assert [piece["type"] for piece in found[-2]["content"]] == [
        "input_text",
        "input_file",
        "input_file",
    ]
    ids = [item["id"] for item in found if "id" in item]
    assert len(ids) == len(set(ids))
    assert json.loads("".join(responses.text(of(TALK, prompt="You."))))["instructions"] == "You."


def test_items_of_unknown_kinds_come_back_as_they_were() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed",
            "action": {"type": "search", "query": "q"}}  # fmt: skip
    refusal = {"type": "refusal", "refusal": "no"}
    found = items(of([assistant(clew.Unknown(item), clew.Unknown(refusal))]))
    assert found[0] == item
    assert found[1]["content"] == [refusal]


def test_atif_steps_have_their_results_and_costs() -> None:
    source = of(TALK, prompt="You look.", calls=(
        call(1, 1, api_group="m1"), call(2, 6), call(3, 9, state="failed"), call(4, 10),
    ))  # fmt: skip
    found = trajectory(source)
    assert found["schema_version"] == "ATIF-v1.7"
    steps = found["steps"]
    assert [step["source"] for step in steps] == [
        "system", "user", "agent", "system", "system", "agent", "system", "user", "agent", "user",
    ]  # fmt: skip
    first = steps[2]
    assert [c["function_name"] for c in first["tool_calls"]] == ["look", "shell"]
    assert first["tool_calls"][0]["arguments"] == {"at": "x"}
    assert first["tool_calls"][1]["extra"] == {"kind": "custom", "arguments": "ls -l"}
    assert [r["source_call_id"] for r in first["observation"]["results"]] == ["c1", "c2"]
    assert first["reasoning_content"] == "Hm."
    assert first["metrics"]["prompt_tokens"] == 100
    assert first["extra"]["seqs"] == [2, 4]
    assert steps[5]["observation"]["results"][0]["extra"] == {"is_error": True}
    assert steps[6]["observation"]["results"][0]["content"] == "late"
    assert steps[5]["metrics"]["cost_usd"] == 0.25
    assert found["final_metrics"]["total_prompt_tokens"] == 400
    assert steps[1]["timestamp"] == "2025-10-09T08:53:20.000001Z"


def test_atif_embeds_sub_agents_where_they_were_called() -> None:
    child = info(id="sub", kind="delegate", origin="conv-1", meta={"import": {"call": "c1"}})
    other = info(id="other", kind="delegate", origin="conv-1")
    grandchild = info(id="grand", kind="delegate", origin="sub")
    source = of(TALK, children=(child, other))
    sub = of([user(clew.Text("help"))], about={"id": "sub", "kind": "delegate"},
             children=(grandchild,))  # fmt: skip
    last = of([], about={"id": "other", "kind": "delegate"})
    deep = of([], about={"id": "grand", "kind": "delegate"})
    found = trajectory(source, sub, last, deep)
    assert [t["trajectory_id"] for t in found["subagent_trajectories"]] == ["sub", "other"]
    assert found["subagent_trajectories"][0]["subagent_trajectories"][0]["trajectory_id"] == "grand"
    result = found["steps"][1]["observation"]["results"][0]
    assert result["subagent_trajectory_ref"][0]["trajectory_id"] == "sub"
    last_result = found["steps"][-1]["observation"]["results"][0]
    assert last_result["subagent_trajectory_ref"][0]["trajectory_id"] == "other"


def test_atif_embeds_no_endless_line_of_sub_agents() -> None:
    def child(id: str) -> Transcript:
        below = info(id=f"{id}+", kind="delegate", origin=id)
        return of([user(clew.Text(id))], about={"id": id}, children=(below,))

    found = validator.Trajectory.model_validate_json("".join(atif.text(child("a"), child)))
    depth = 0
    while found.subagent_trajectories:
        found, depth = found.subagent_trajectories[0], depth + 1
    assert depth == atif.DEEPEST - 1


@pytest.mark.parametrize(
    "drafts",
    [
        [],
        [result("nobody", "asked")],
        [assistant(CALL), assistant(CALL), result("c1", "x"), result("c1", "y")],
        [user(clew.Text("a"), clew.ToolResult("c9", "inside"))],
        [assistant(clew.Image(url="ftp://x/y"), clew.Image(media_type="image/svg+xml"))],
        [user(clew.Image(), clew.File(), clew.ToolResult("c", (clew.Image(),)))],
        [assistant(clew.ToolCall("", "", "[1]"))],
        [user(clew.Unknown(None), clew.Unknown([1]), clew.Unknown({"type": 5}))],
        [assistant(clew.Reasoning(data="x"))],
        [user(clew.Text("x"), author="Ann"), assistant(clew.Text("y"), api_group="g")],
    ],
)
def test_odd_logs_are_exported_too(drafts: list[clew.Draft]) -> None:
    source = of(drafts)
    messages(source)
    items(source)
    trajectory(source)


@pytest.mark.parametrize("form", [chat, responses, atif])
def test_files_of_json_are_harmless_to_a_terminal_and_exact(form: Any) -> None:
    source = of([user(clew.Text(EVIL)), result("c", EVIL)], about={"title": EVIL})
    text = "".join(form.text(source))
    assert not [c for c in text if (ord(c) < 0x20 and c != "\n") or c in "\x7f\x9b\u202e\ud83d"]
    assert json.dumps(EVIL.replace("\ud83d", "\ufffd"))[1:-1] in json.dumps(json.loads(text))


@pytest.mark.parametrize("form", [chat, responses, atif])
def test_lone_surrogates_are_replaced_for_other_tools(form: Any) -> None:
    odd = "a\ud83d b\udc00\ud83d\ude00 \\ud83d \U0001f600"
    call = clew.ToolCall("c1", "f", json.dumps({"x": odd}, ensure_ascii=False))
    source = of([user(clew.Text(odd)), assistant(call), result("c1", odd)], prompt=odd,
                about={"title": odd, "model": odd})  # fmt: skip
    text = "".join(form.text(source))
    assert "\\ud83d b" not in text
    whole = json.dumps(json.loads(text), ensure_ascii=False)
    whole.encode()
    assert "a\ufffd b\ufffd\U0001f600 \\\\ud83d \U0001f600" in whole
    if form is atif:
        validator.Trajectory.model_validate_json(text)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("form", [chat, responses, atif])
def test_no_line_of_a_file_is_a_value_of_its_own(form: Any, count: int) -> None:
    """Else it is taken for JSON lines."""
    drafts = [user(clew.Text("x"))] * count
    rows = "".join(form.text(of(drafts, toolset=({"function": {"name": "f"}},)))).split("\n")
    assert len(rows) >= 3
    for row in rows[:-1]:
        with pytest.raises(ValueError, match=r"."):
            json.loads(row)
    assert not [row for row in rows[1:] if row.startswith("{")]
