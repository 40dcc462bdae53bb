"""Where the cache marks of a request to Anthropic stand."""

from __future__ import annotations

from typing import Any

from clew.context.entries import Entry
from clew.context.sections import Item
from clew.domain.messages import Message, Role
from clew.domain.parts import Text
from clew.providers.anthropic_marks import aside, marked

Json = dict[str, Any]
MARK = {"type": "ephemeral"}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def payload(*turns: list[Json], **more: Any) -> Json:
    roles = ("user", "assistant")
    return more | {
        "messages": [{"role": roles[n % 2], "content": turn} for n, turn in enumerate(turns)]
    }


def marks(made: Json) -> list[str]:
    """What is marked, by its words."""
    blocks = [*made.get("tools", ()), *made.get("system", ())]
    blocks += [block for message in made["messages"] for block in message["content"]]
    for block in blocks:
        assert block.get("cache_control", MARK) == MARK
    return [block.get("text") or block["name"] for block in blocks if "cache_control" in block]


def test_the_prompt_the_last_words_and_the_last_words_before() -> None:
    made = payload([text("a"), text("b")], [text("c")], [text("d")], system=[text("S")],
                   tools=[{"name": "t"}])  # fmt: skip
    before = str(made)
    assert marks(marked(made, 0)) == ["S", "b", "d"]
    assert str(made) == before


def test_without_a_prompt_the_last_tool_is_marked() -> None:
    made = payload([text("a")], tools=[{"name": "t"}, {"name": "u"}])
    assert marks(marked(made, 0)) == ["u", "a"]


def test_what_is_beside_is_not_marked() -> None:
    assert marks(marked(payload([text("a")], [text("b")], [text("c"), text("note")]), 1)) == [
        "a", "c",
    ]  # fmt: skip
    assert marks(marked(payload([text("a")], [text("b")], [text("note")]), 1)) == ["a", "b"]
    assert marks(marked(payload([text("note")]), 1)) == []


def test_thinking_takes_no_mark() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
    made = payload([text("a")], [thought], [text("note")])
    assert marks(marked(made, 1)) == ["a"]


def test_the_mark_before_is_found_again_in_the_next_request() -> None:
    """Each request has a mark where the last one had its own, whatever was said between."""
    turns = [[text("u0")]]
    last = ""
    for step in range(30):
        found = marks(marked(payload(*turns), 0))
        assert len(found) <= 3
        assert step == 0 or last in found
        last = found[-1]
        results = [text(f"r{step}.{number}") for number in range(25)]
        turns += [[text(f"a{step}")], results]


def test_an_hour() -> None:
    made = marked(payload([text("a")]), 0, "1h")
    assert made["messages"][0]["content"][0]["cache_control"] == MARK | {"ttl": "1h"}


# ---------------------------------------------------------------------- what is beside


def item(words: list[str], own: int, section: Any = "tail") -> Item:
    """Parts, of which the first `own` stand in a message of the log."""
    parts = tuple(map(Text, words))
    message = Message.of(seq=1, uid="0" * 32, role=Role.USER, parts=parts[:own], created_at=0)
    return Item(Entry(Role.USER, parts, messages=(message,) if own else ()), section, 1, 1)


def test_what_no_message_holds_is_beside() -> None:
    assert aside([]) == 0
    assert aside([item(["a"], 1)]) == 0
    assert aside([item(["a"], 1), item(["b", "n", "m"], 1)]) == 2
    assert aside([item(["a", "n"], 1), item(["b"], 1)]) == 0
    assert aside([item(["b", "n"], 1), item(["todo"], 0)]) == 2


def test_a_ledger_is_not_beside() -> None:
    """It stays for good."""
    assert aside([item(["head"], 1, "head"), item(["ledger"], 0, "ledger")]) == 0
