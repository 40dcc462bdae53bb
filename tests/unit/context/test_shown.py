"""Results of which a model is shown a part: the beginning, the end, and how to read the rest."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saying import assistant, call, no_blob, user

import clew
from clew import Budget, Compactor, Draft, File, Image, Role, Text, ToolCall, ToolResult
from clew.compaction.recall import recall
from clew.compaction.stubs import stub_text, worth
from clew.context.anthropic import anthropic_messages
from clew.context.chat import chat_messages
from clew.context.entries import Entry, entry_of
from clew.context.measure import bytes_of, measure_for
from clew.context.responses import responses_items
from clew.context.shown import SLACK, seen, seen_parts
from clew.context.tokens import count_parts
from clew.domain.messages import Message
from clew.domain.parts import MOST_SHOWN, check_parts, result_text
from clew.exporters import atif, chat, clew_jsonl, html, markdown, responses
from clew.exporters.transcript import transcript
from clew.importers.clew_jsonl import bring
from clew.testing.clock import FakeClock
from clew.testing.reference import ReferenceStore

GAP = re.compile(r'\[\.\.\. ([\d,]+) characters left out; recall\("@57"\) reads them\]')
LONG = "".join(f"line {n} of the log\n" for n in range(10_000))


def message(*parts: clew.Part, seq: int = 57) -> Message:
    return Message.of(seq=seq, uid="0" * 32, role=Role.TOOL, parts=parts, created_at=0)


def shown(content: Any, most: int) -> Any:
    """What becomes of the content."""
    (part,) = seen(entry_of(message(ToolResult("c", content, shown=most)))).parts
    assert isinstance(part, ToolResult)
    assert part.shown is None
    return part.content


def test_its_beginning_and_its_end_are_shown_and_how_to_read_the_rest() -> None:
    text = shown(LONG, 3_000)
    (left,) = GAP.findall(text)
    before, after = GAP.split(text)[::2]
    assert LONG.startswith(before)
    assert LONG.endswith(after.removeprefix("\n"))
    assert int(left.replace(",", "")) == len(LONG) - len(before) - len(after) + 1
    assert 1_700 < len(before) <= 2_000
    assert 850 < len(after) <= 1_001
    assert before.endswith("\n")
    assert after.startswith("\nline ")


def test_a_text_without_lines_is_cut_where_the_room_ends() -> None:
    text = shown("x" * 5_000, 300)
    assert (
        text
        == f'{"x" * 200}\n[... 4,700 characters left out; recall("@57") reads them]\n{"x" * 100}'
    )


def test_of_nothing_shown_the_line_is_left() -> None:
    assert shown("x" * 5_000, 0) == '[... 5,000 characters left out; recall("@57") reads them]'


@pytest.mark.parametrize("content", ["", "short", "x" * (300 + SLACK), (Text("a"), Text("b"))])
def test_what_is_hardly_longer_is_shown_whole(content: Any) -> None:
    """The line would take as much as it leaves out."""
    assert shown(content, 300) == content


def test_the_limit_counts_over_all_texts_and_leaves_pictures_alone() -> None:
    picture, paper = Image(url="https://x/y"), File(url="https://x/z")
    content = (Text("a" * 250), picture, Text("b" * 500), paper, Text("c" * 150), Text("d" * 50))
    assert shown(content, 300) == (
        Text(f'{"a" * 200}\n[... 650 characters left out; recall("@57") reads them]'),
        picture, paper, Text("c" * 50), Text("d" * 50),
    )  # fmt: skip


def test_what_is_no_message_of_the_log_names_none() -> None:
    (part,) = seen(Entry(Role.TOOL, (ToolResult("c", "x" * 900, shown=10),))).parts
    assert "[... 890 characters left out]" in result_text(part)  # pyright: ignore[reportArgumentType]


texts = st.text(st.sampled_from("ab\n é"), max_size=400)
contents: Any = texts | st.lists(
    st.builds(Text, texts) | st.just(Image(url="https://x/y")), max_size=5
).map(tuple)


@given(contents, st.integers(0, 300))
def test_it_never_takes_more_than_it_may_nor_shows_what_is_not_there(
    content: Any, most: int
) -> None:
    whole = "".join(_texts(content))
    said = "".join(_texts(shown(content, most)))
    if len(whole) <= most + SLACK:
        assert said == whole
        return
    ((left, start, end),) = [(m[1], *m.span()) for m in GAP.finditer(said)]
    before, after = said[:start], said[end:]
    kept = len(before.rstrip("\n")) + len(after.lstrip("\n"))
    assert kept <= most
    assert whole.startswith(before) or whole.startswith(before.removesuffix("\n"))
    assert whole.endswith(after) or whole.endswith(after.removeprefix("\n"))
    assert len(whole) - most <= int(left.replace(",", "")) <= len(whole) - most + most // 8 + 1


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [piece.text for piece in content if isinstance(piece, Text)]


@given(contents, st.integers(0, 300))
def test_a_second_look_changes_nothing(content: Any, most: int) -> None:
    once = seen(entry_of(message(ToolResult("c", content, shown=most))))
    assert seen(once) is once
    free = message(ToolResult("c", content))
    assert seen(entry_of(free)).parts is free.parts
    assert seen_parts(free.parts) is free.parts


def test_every_shape_shows_the_same() -> None:
    log = [user("go"), assistant(call("c")), entry_of(message(ToolResult("c", LONG, shown=1_500)))]
    text = shown(LONG, 1_500)
    assert chat_messages(None, log, no_blob)[-1]["content"] == text
    assert chat_messages(None, log, no_blob, alternate=True)[-1]["content"] == text
    assert responses_items(log, no_blob)[-1]["output"] == text
    assert anthropic_messages(log, no_blob)[-1]["content"][0]["content"] == text


def test_counts_are_of_what_is_shown() -> None:
    parts = (ToolResult("c", LONG, shown=3_000),)
    short = (ToolResult("c", shown(LONG, 3_000)),)
    assert abs(count_parts(parts) - count_parts(short)) <= 3
    assert abs(bytes_of(parts) - bytes_of(short)) <= 6
    measure = measure_for(None)
    assert abs(measure.message(message(*parts)) - measure.parts(short)) <= 8
    assert count_parts((ToolResult("c", LONG),)) > 20 * count_parts(short)


@pytest.mark.parametrize("wrong", [-1, MOST_SHOWN + 1, True, 1.5, "all"])
def test_what_is_no_number_of_characters_is_refused(wrong: Any) -> None:
    with pytest.raises(clew.InputError):
        check_parts((ToolResult("c", "x", shown=wrong),))
    with pytest.raises(clew.InputError):
        check_parts((ToolResult("c", (Text("x"),), shown=wrong),))


def test_a_stub_is_made_of_what_costs() -> None:
    """A long output of which little is shown is short already."""
    assert worth(message(ToolResult("c", LONG)))
    assert not worth(message(ToolResult("c", LONG, shown=300)))
    assert "recall(57)" in stub_text(message(ToolResult("c", "x" * 120, shown=10)), room=80)
    assert stub_text(message(ToolResult("c", "ok", shown=10))) == "ok"


# ---------------------------------------------------------------------- stores


def filled(conv: Any, most: int | None) -> None:
    conv.append([
        clew.user("go"), Draft(role=Role.ASSISTANT, parts=(ToolCall("c", "run", "{}"),)),
        Draft(role=Role.TOOL, parts=(ToolResult("c", LONG, "run", shown=most),)),
    ])  # fmt: skip


def test_the_log_keeps_the_whole_and_a_request_has_what_is_shown(tmp_path: Path) -> None:
    with clew.open(tmp_path / "a.db") as store:
        conv = store.profile("p").create()
        filled(conv, 3_000)
        context = Compactor(Budget(window=20_000)).peek(conv)
        assert context.tokens < 2_000
        assert context.shortened == 0
        last = context.chat(conv.blob)[-1]["content"]
        assert 'recall("@3")' in last
        assert context.items[-1].entry.parts == (ToolResult("c", last, "run"),)
        assert conv.message(3).parts == (ToolResult("c", LONG, "run", shown=3_000),)
        assert conv.context()[-1]["content"] == LONG, "a list that may be stored again has all"
        assert "line 5000 of the log" in recall(conv, "@3", limit=1_000_000).text


def test_files_of_other_tools_have_the_whole_and_ours_the_field_too(tmp_path: Path) -> None:
    """So does a search."""
    with clew.open(tmp_path / "a.db") as store, clew.open(tmp_path / "b.db") as there:
        profile, other = store.profile("p"), there.profile("p")
        conv = profile.create()
        filled(conv, 300)
        assert profile.search('"line 5000 of the log"').hits
        source = transcript(conv)
        for form in (chat, responses, markdown, html, atif):
            assert "line 5000 of the log" in "".join(form.text(source)), form
        out = io.BytesIO()
        out.write(clew_jsonl.header("p", 1, "test", True))
        clew_jsonl.write(profile, profile.transfer().family(), out.write)
        bring(other, io.BytesIO(out.getvalue()))
        assert other.open(conv.id).message(3).parts == conv.message(3).parts


def test_a_result_that_must_become_shorter_still_says_how_long_it_is() -> None:
    conv: Any = ReferenceStore(clock=FakeClock()).profile("p").create()
    filled(conv, 30_000)
    context = Compactor(Budget(window=4_000)).peek(conv)
    assert context.tokens <= context.limit
    assert f"{len(LONG):,} characters in all; recall(3)" in context.chat(conv.blob)[-1]["content"]
