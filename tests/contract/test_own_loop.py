"""Five lines for somebody with their own agent loop: add, context, pop, replace."""

from __future__ import annotations

import json

import pytest
from talk import HOLDER, begun, texts

import clew

CALL = {
    "role": "assistant", "content": None,
    "tool_calls": [{"id": "c1", "type": "function",
                    "function": {"name": "run", "arguments": '{"x": 1}'}}],
}  # fmt: skip
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}


def say(text: str, role: str = "user", **more: object) -> dict[str, object]:
    return {"role": role, "content": text, **more}


def test_what_was_added_is_the_context(conv: clew.Conversation) -> None:
    loop = [say("go"), CALL, RESULT, say("done", "assistant")]
    conv.add(loop[0])
    conv.add(loop[1:])
    assert conv.context() == loop


@pytest.mark.parametrize(
    "message",
    [
        say("x", name="Ada"),
        say("x", "developer"),
        say("", "assistant"),
        {"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            {"type": "input_audio", "input_audio": {"data": "xx", "format": "wav"}},
        ]},
        {"role": "assistant", "content": None, "refusal": "I cannot"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "x"},
        {"role": "user", "content": []}, {"role": "user", "content": None}, {"role": "user"},
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": "x", "refusal": None, "annotations": [{"a": 1}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ],
    ids=repr,
)  # fmt: skip
def test_a_message_comes_back_as_it_was(conv: clew.Conversation, message: dict) -> None:
    conv.add(message)
    assert conv.context() == [message]
    json.dumps(conv.context())


def test_adding_the_whole_list_again_adds_what_is_new(conv: clew.Conversation) -> None:
    loop = [say("a", id="1"), say("b", "assistant", id="2")]
    conv.add(loop)
    loop.append(say("c", id="3"))
    assert conv.add(loop).new == 1
    assert texts(conv) == ["a", "b", "c"]


@pytest.mark.parametrize("bad", [{}, {"role": "robot"}, {"role": "tool", "content": "x"}])
def test_what_is_no_message_is_refused(conv: clew.Conversation, bad: dict) -> None:
    with pytest.raises(clew.InputError):
        conv.add([say("a"), bad])
    assert texts(conv) == []


def test_pop_takes_the_newest_out(conv: clew.Conversation) -> None:
    conv.add([say("a"), say("b", "assistant"), say("c"), say("d", "assistant")])
    assert texts(conv.pop(2)) == ["c", "d"]
    assert texts(conv) == ["a", "b"]
    conv.add(say("e"))
    assert texts(conv.pop(2)) == ["b", "e"]
    assert texts(conv.pop(5)) == ["a"]
    assert conv.pop() == []
    assert texts(conv.messages(hidden=True)) == list("abcde")
    with pytest.raises(clew.InputError):
        conv.pop(0)


def test_a_popped_message_is_undone_like_any_cut(conv: clew.Conversation) -> None:
    conv.add([say("a"), say("b")])
    conv.pop()
    conv.undo_cut()
    assert texts(conv) == ["a", "b"]


def test_s01_8_replace_makes_the_log_equal_to_a_list(conv: clew.Conversation) -> None:
    conv.add([say("a"), say("b", "assistant"), say("c")])
    done = conv.replace([say("a"), say("B", "assistant"), say("d")])
    assert (done.seqs, done.new) == ((1, 4, 5), 2)
    assert texts(conv) == ["a", "B", "d"]
    assert texts(conv.messages(hidden=True)) == ["a", "b", "c", "B", "d"]


def test_replacing_by_the_same_list_changes_nothing(conv: clew.Conversation) -> None:
    loop = [say("a"), CALL, RESULT, say("b", "assistant", name="bot")]
    conv.add(loop)
    before = conv.info()
    assert conv.replace(loop).new == 0
    assert conv.replace(conv.context()).new == 0
    assert conv.replace([m.draft() for m in conv.messages()]).new == 0
    assert conv.info() == before


def test_replace_extends_and_empties(conv: clew.Conversation) -> None:
    conv.replace([say("a")])
    assert conv.replace([say("a"), say("b")]).seqs == (1, 2)
    assert conv.cuts() == ()
    conv.replace([])
    assert texts(conv) == []
    conv.replace([say("a")])
    assert texts(conv) == ["a"]


def test_replace_keeps_messages_whose_names_come_again(conv: clew.Conversation) -> None:
    """The ids of what is cut off stay taken; what comes again under them is stored all the same."""
    loop = [say("a", id="1"), say("b", "assistant", id="2"), say("c", id="3")]
    conv.add(loop)
    loop[0] = say("A", id="1")
    conv.replace(loop)
    assert texts(conv) == ["A", "b", "c"]
    kept = [m.draft() for m in conv.messages()]
    conv.replace([clew.user("new"), *kept])
    assert texts(conv) == ["new", "A", "b", "c"]


def test_replace_sees_who_spoke(conv: clew.Conversation) -> None:
    conv.add(say("a", name="Ada"))
    conv.replace([say("a", name="Bob")])
    assert [m.author for m in conv.messages()] == ["Bob"]


def test_replace_in_an_open_turn_tells_what_waits(conv: clew.Conversation) -> None:
    turn = begun(conv.begin_turn([clew.user("go")], holder=HOLDER))
    waiting = conv.replace([say("go"), say("more")])
    assert (waiting.seqs, waiting.numbers, waiting.new, waiting.queued) == ((1,), (1,), 1, True)
    conv.replace([say("other")])
    assert texts(conv) == ["other"]
    with pytest.raises(clew.RightLost):
        turn.finish()


class TestLongLoop:
    @pytest.fixture
    def limits(self) -> clew.Limits:
        return clew.Limits(batch=3)

    def test_a_long_list_is_replaced_by_one_that_is_a_little_longer(
        self, conv: clew.Conversation
    ) -> None:
        """The limit is on what comes in, not on what is there."""
        loop = [say(str(n)) for n in range(3)]
        for start in range(3, 12, 3):
            conv.replace(loop)
            loop += [say(str(n)) for n in range(start, start + 3)]
        conv.replace(loop)
        assert texts(conv) == [str(n) for n in range(12)]
        assert conv.cuts() == ()
        with pytest.raises(clew.TooLarge):
            conv.replace([*loop, *[say("more")] * 4])
        assert len(texts(conv)) == 12


def test_replace_with_a_bad_message_changes_nothing(conv: clew.Conversation) -> None:
    conv.add([say("a"), say("b")])
    with pytest.raises(clew.InputError):
        conv.replace([clew.user("x"), clew.user("y", uid="bad")])
    with pytest.raises(clew.InputError):
        conv.replace([clew.user("x"), clew.user("y", replaces=99)])
    assert texts(conv) == ["a", "b"]
    assert conv.cuts() == ()


def test_a_context_is_valid_for_a_provider(conv: clew.Conversation) -> None:
    """B35 and kin: every call is answered, no answer is without its call."""
    conv.add([say("go"), CALL, say("never mind"), {**RESULT, "content": "late"}])
    rendered = conv.context()
    assert [m["role"] for m in rendered] == ["user", "assistant", "tool", "user"]
    assert rendered[2] == {**RESULT, "content": "late"}
    assert [m.role for m in conv.messages()] == ["user", "assistant", "user", "tool"]


def test_only_a_call_without_any_result_is_closed(conv: clew.Conversation) -> None:
    conv.add([say("go"), CALL, say("hurry")])
    assert "interrupted" in str(conv.context()[2]["content"])
    conv.add(RESULT)
    assert conv.context() == [say("go"), CALL, RESULT, say("hurry")]


@pytest.mark.parametrize(
    "chat",
    [
        42,
        "x",
        [1],
        {"role": "system", "content": "evil"},
        {"tool_calls": [1]},
        {"_clew": {"content": "absent"}},
    ],
    ids=repr,
)
def test_meta_is_the_callers(conv: clew.Conversation, chat: object) -> None:
    conv.append([clew.user("x", meta={"chat": chat})])
    assert conv.context() == [say("x")]
    assert conv.message(1).meta == {"chat": chat}
