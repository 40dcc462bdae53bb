"""What stays of a tool's output."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.compaction.outputs import LINE, described
from clew.compaction.stubs import (
    LEAST_ROOM,
    ROOM,
    SAVES,
    same_text,
    stub_text,
    superseded,
    worth,
)
from clew.domain.messages import Message, Role
from clew.domain.parts import File, Image, Parts, Text, ToolCall, ToolResult, Unknown, result_text
from clew.errors import InputError

PYTEST = "\n".join(
    [
        "collected 412 items",
        *(f"tests/unit/test_{n}.py ........" for n in range(400)),
        "E       AssertionError: 3 != 4",
        *(f"some more output {n}" for n in range(9)),
        "FAILED tests/unit/test_a.py::test_sum",
    ]
)


def message(*parts: Any, seq: int = 12, role: Role = Role.TOOL) -> Message:
    return Message.of(seq=seq, uid=f"{seq:032x}", role=role, parts=parts, created_at=0)


def result(content: Any, **fields: Any) -> ToolResult:
    return ToolResult("c1", content, **fields)


def called(name: str, arguments: Any) -> dict[str, ToolCall]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"c1": ToolCall("c1", name, text)}


def stub(content: Any, calls: dict[str, ToolCall] | None = None, **fields: Any) -> list[str]:
    return stub_text(message(result(content, **fields)), calls or {}).split("\n")


# ---------------------------------------------------------------------- what it says


def test_a_failed_command_keeps_call_code_errors_size_and_handle() -> None:
    text = f"{PYTEST}\n\nCommand exited with code 1"
    assert stub(text, called("bash", {"command": "pytest -q tests/unit", "timeout": 60})) == [
        "bash: pytest -q tests/unit, timeout=60",
        "exit code 1",
        "E AssertionError: 3 != 4",
        "FAILED tests/unit/test_a.py::test_sum",
        f"[414 lines, {len(text):,} characters: recall(12)]",
    ]


def test_a_command_that_went_well_keeps_its_first_and_last_line() -> None:
    text = "\n".join(
        ["> app@1.0.0 build", *("compiled" for _ in range(99)), "0 errors", "Exit Code: 0"]
    )
    lines = stub(text, called("shell", {"command": ["bash", "-lc", "npm run build"]}))
    assert lines[:4] == ["shell: npm run build", "exit code 0", "> app@1.0.0 build", "Exit Code: 0"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Exit code: 3\nWall time: 1 s\nOutput:\n", 3),
        ("<returncode>0</returncode>\n<output>\n", 0),
        ("[Command finished with exit code 127]", 127),
        ("Process exited with code -9", -9),
        ("error: script returned exit status 2", 2),
        ('{"output": "x", "metadata": {"exit_code": 4}}', 4),
        ('{"output": "x", "exit_code": 5, "error": null}', 5),
    ],
)
def test_an_exit_code_is_found_as_tools_write_it(text: str, code: int) -> None:
    long = text if text[0] == "{" else f"{text}\n{'padding ' * 200}"[:1500]
    if long[0] == "{":
        long = json.dumps(json.loads(long) | {"output": "line\n" * 300})
    assert f"exit code {code}" in stub(long, called("run", {"cmd": "make"}))


def test_an_exit_code_inside_of_a_file_is_not_that_of_a_call() -> None:
    text = "def main():\n" + "    pass\n" * 200 + "    # exit code 3\n"
    assert "exit code 3" not in stub(text, called("read_file", {"path": "src/a.py"}))


def test_an_exit_code_in_the_middle_of_an_output_is_that_of_something_else() -> None:
    text = "starting\n" + "fine\n" * 300 + "child: exit code 3\n" + "fine\n" * 300
    assert "exit code 3" not in stub(text, called("bash", {"command": "make"}))


def test_a_file_that_speaks_of_errors_is_no_error() -> None:
    text = "import os\n" + "raise ValueError('no')\n" * 100 + "END = 1"
    for calls in (
        called("read", {"path": "src/a.py", "offset": 1}),
        called("bash", {"command": "cd src && cat a.py"}),
        called("bash", {"command": "grep -rn ValueError src"}),
    ):
        lines = stub(text, calls)
        assert lines[1:3] == ["import os", "END = 1"]


def test_an_output_that_is_an_error_says_so() -> None:
    text = "Error: no such file: src/b.py\n" + "hint\n" * 300
    assert stub(text, called("read", {"path": "src/b.py"}), is_error=True)[:3] == [
        "read: src/b.py", "failed", "Error: no such file: src/b.py",
    ]  # fmt: skip


def test_what_is_wrapped_in_json_is_read_as_its_text() -> None:
    text = json.dumps({"output": "first\n" + "x\n" * 400 + "last", "exit_code": 0})
    lines = stub(text, called("terminal", {"command": "ls"}))
    assert lines[:4] == ["terminal: ls", "exit code 0", "first", "last"]
    assert lines[4].startswith("[402 lines, ")


def test_words_for_no_error_are_no_error() -> None:
    text = "\n".join(["building", "0 errors, 0 warnings", "Error: (none)", *["ok"] * 200, "done"])
    assert stub(text, called("bash", {"command": "make"}))[1:3] == ["building", "done"]


def test_images_and_files_become_handles() -> None:
    content = (
        Text("screenshot"),
        Image("image/png", hash="0" * 64, size=240_123, width=812, height=600),
        File("application/pdf", name="a.pdf", size=1_900_000),
        Unknown({"type": "audio"}),
    )
    lines = stub(content, called("browser", {"url": "https://example.org"}))
    assert lines == [
        "browser: https://example.org", "image/png 812x600, 240 kB",
        "a.pdf, application/pdf, 2 MB", "content of an unknown kind", "screenshot",
        "[1 line, 10 characters: recall(12)]",
    ]  # fmt: skip


def test_several_results_share_one_stub() -> None:
    calls = {
        "a": ToolCall("a", "read", '{"path": "a.py"}'),
        "b": ToolCall("b", "read", '{"path": "b.py"}'),
    }
    both = message(ToolResult("a", "one\n" * 500), ToolResult("b", "two\n" * 500))
    assert stub_text(both, calls).split("\n") == [
        "read: a.py", "one", "read: b.py", "two",
        "[2 results, 1,000 lines, 4,000 characters: recall(12)]",
    ]  # fmt: skip


def test_a_result_without_its_call_tells_by_itself() -> None:
    assert stub("out\n" * 500, name="grep")[0] == "grep"
    assert stub("out\n" * 500)[0] == "out"


def test_a_call_is_described_by_command_and_path_first() -> None:
    def line(arguments: Any) -> str:
        return described(called("tool", arguments)["c1"])

    assert line({"limit": 5, "file_path": "a.py"}) == "tool: a.py, limit=5"
    assert line({"content": "x" * 500, "path": "a.py"}).startswith("tool: a.py, content=xxx")
    assert line("*** Begin Patch") == "tool: *** Begin Patch"
    assert line("{}") == "tool"
    assert line("{broken") == "tool: {broken"
    assert line([1, 2]) == "tool: [1, 2]"
    assert len(line({"command": "echo " + "word " * 500 + "> out.txt"})) <= LINE
    assert line({"command": "echo " + "word " * 500 + "> out.txt"}).endswith("> out.txt")


# ---------------------------------------------------------------------- when it is worth it


def test_it_is_worth_it_from_400_characters_and_half_on() -> None:
    assert not worth(message(result("x" * SAVES)))
    assert worth(message(result("line\n" * 400)))
    assert not worth(message(Text("word " * 1000), role=Role.USER))


def test_half_has_to_go_even_if_400_characters_would() -> None:
    calls = called("bash", {"command": "make " + "target " * 40})
    text = f"error: {'a' * 300}\n{'b' * 350}\nerror: {'c' * 300}"
    saved = len(text) - len(stub_text(message(result(text)), calls))
    assert SAVES < saved < len(text) / 2
    assert not worth(message(result(text)), calls)


def test_what_each_output_was_goes_before_what_it_said() -> None:
    calls = {id: ToolCall(id, "read", json.dumps({"path": f"{id}.py"})) for id in ("a", "b", "c")}
    shown = message(*(ToolResult(id, f"{id} line\n" * 500) for id in calls))
    lines = stub_text(shown, calls, room=90).split("\n")
    assert {"read: a.py", "read: b.py", "read: c.py"} <= set(lines)


def test_a_stub_that_every_result_gets_has_to_save_all_the_same() -> None:
    parts = tuple(ToolResult(f"c{n}", f"output {n} " * 20) for n in range(12))
    assert not worth(message(*parts))


def test_an_image_is_worth_a_stub() -> None:
    assert worth(message(result((Image(hash="0" * 64, size=9),))))


def test_only_results_are_shortened() -> None:
    with pytest.raises(InputError, match="holds no tool result"):
        stub_text(message(Text("a person's words " * 200), role=Role.USER))
    with pytest.raises(InputError, match="at least 80"):
        stub_text(message(result("x")), room=LEAST_ROOM - 1)


# ---------------------------------------------------------------------- outputs that come again


def test_an_output_that_comes_again_word_for_word_gives_way_to_the_newest() -> None:
    text, other = "line of a file\n" * 20, "another line of it\n" * 20
    log = [
        message(result(said), seq=seq)
        for seq, said in enumerate((text, other, text, "ok", "ok", text), start=1)
    ]
    assert superseded(log) == {1: 6, 3: 6}
    assert superseded(reversed(log)) == {1: 6, 3: 6}


def test_an_error_and_a_success_of_one_text_differ() -> None:
    text = "x" * 500
    log = [message(result(text), seq=1), message(result(text, is_error=True), seq=2)]
    assert superseded(log) == {}


def test_what_comes_again_is_named() -> None:
    repeated = message(result("x" * 500), seq=3)
    said = same_text(repeated, 41, called("read", {"path": "a.py"}))
    assert said == "read: a.py: same as [@41]; recall(3)"
    assert same_text(repeated, 41) == "same as [@41]; recall(3)"


# ---------------------------------------------------------------------- whatever the output

texts = st.text(alphabet='abc \n\t{}"error0:é服\ud800\x1b[m', max_size=1500) | st.text(max_size=200)
contents = texts | st.lists(
    st.builds(Text, texts)
    | st.builds(Image, size=st.integers(0, 10**10))
    | st.builds(File, name=st.none() | texts)
    | st.builds(Unknown, st.recursive(texts, lambda inner: st.lists(inner, max_size=3))),
    max_size=4,
).map(tuple)
parts_of = st.lists(
    st.builds(
        ToolResult, st.sampled_from(["c1", "c2", "c3"]), contents, st.none() | texts, st.booleans()
    ),
    min_size=1,
    max_size=4,
).map(tuple)
calls_of = st.dictionaries(
    st.sampled_from(["c1", "c2"]),
    st.builds(
        ToolCall, st.just("c"), texts,
        texts | st.dictionaries(texts, texts | st.integers() | st.none(), max_size=4).map(
            lambda value: json.dumps(value, ensure_ascii=True)
        ),
    ),
)  # fmt: skip


@given(parts_of, calls_of, st.integers(LEAST_ROOM, 2000), st.integers(1, 10**9))
def test_a_stub_is_bounded_deterministic_and_never_longer(
    parts: Parts, calls: dict[str, ToolCall], room: int, seq: int
) -> None:
    shown = message(*parts, seq=seq)
    text = stub_text(shown, calls, room=room)
    assert text == stub_text(shown, calls, room=room)
    assert len(text) <= room
    whole = "\n".join(result_text(part) for part in parts if isinstance(part, ToolResult))
    assert text == whole or text.endswith(f"recall({seq})]")
    if all(isinstance(part.content, str) for part in parts):  # pyright: ignore
        assert len(text) <= len(whole)


@given(parts_of, calls_of)
def test_a_stub_that_is_worth_it_saves_as_much_as_it_should(
    parts: Parts, calls: dict[str, ToolCall]
) -> None:
    shown = message(*parts)
    plain = [part.content for part in parts if isinstance(part.content, str)]  # pyright: ignore
    if worth(shown, calls) and len(plain) == len(parts):
        before = sum(map(len, plain))
        after = len(parts) * len(stub_text(shown, calls))
        assert before - after > SAVES
        assert after * 2 <= before


def test_a_megabyte_of_output_is_shortened_at_once() -> None:
    """One long output, and one line without an end; nothing is quadratic in it."""
    long = "error? no: all is well\n0 errors\n" * 40_000
    started = time.process_time()
    for text in (long, "x" * 1_000_000, "error" * 200_000, json.dumps({"output": long})):
        shown = stub_text(message(result(text)), called("bash", {"command": "make"}))
        assert len(shown) <= ROOM
    assert time.process_time() - started < 60, "an expression that goes back takes hours"
