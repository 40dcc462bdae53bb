"""What a tool said, as the log keeps it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clew.domain.parts import Image, Text, ToolCall, result_text
from clew.tools.api import ToolOutput
from clew.tools.output import HARD, cut, result, size

CALL = ToolCall("call-1", "fs__read")


def test_a_short_result_is_as_it_was() -> None:
    found = result(CALL, ToolOutput("text", is_error=True), 30)
    assert (found.call_id, found.name, found.content) == ("call-1", "fs__read", "text")
    assert found.is_error
    assert found.shown is None


def test_a_long_one_is_kept_whole_and_says_how_much_a_model_is_shown() -> None:
    found = result(CALL, ToolOutput("x" * 31), 30)
    assert found.content == "x" * 31
    assert found.shown == 30
    assert result(CALL, ToolOutput("x" * 31), 0).shown is None


def test_texts_beside_images_count_together() -> None:
    parts = (Text("x" * 20), Image(data=b"png"), Text("y" * 20))
    found = result(CALL, ToolOutput(parts), 30)
    assert found.content == parts
    assert found.shown == 30


def test_what_is_too_large_to_store_loses_its_middle_and_says_so() -> None:
    text = "begin" + "x" * (HARD + 10) + "end"
    found = result_text(result(CALL, ToolOutput(text), 30))
    assert found.startswith("begin")
    assert found.endswith("end")
    assert f"of {len(text):,} characters were left out here" in found
    assert size(found) <= HARD + 200


def test_many_large_texts_share_the_room() -> None:
    found = result(CALL, ToolOutput((Text("x" * HARD), Text("y" * HARD), Image(data=b"z"))), 30)
    assert isinstance(found.content, tuple)
    assert sum(size(part.text) for part in found.content if isinstance(part, Text)) < HARD + 400
    assert found.content[-1] == Image(data=b"z")


@given(st.text(st.characters(codec=None), max_size=300), st.integers(50, 400))
def test_a_cut_keeps_both_ends_of_any_text(text: str, most: int) -> None:
    found = cut(text, most)
    if found != text:
        begin, _, end = found.partition("\n[")
        assert text.startswith(begin)
        assert text.endswith(end.rpartition("]\n")[2])
    else:
        assert size(text) <= most or len(text) * 6 <= most
