"""`clew chat` as a person sees it."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import clew
from clew.domain.messages import Role

from .conftest import Open
from .tmux import PATIENCE, Tmux, as_golden


def go(chat: Tmux, home: Path, name: str) -> None:
    """Let what waits go on."""
    (home / f"gate-{name}").touch()


def texts(home: Path) -> list[tuple[str, str]]:
    """(role, text) of the newest conversation."""
    with clew.open(home / "clew.db") as store:
        profile = store.profile("default")
        newest = profile.list(limit=1).items[0]
        return [(str(m.role), m.text) for m in profile.open(newest.id).messages()]


def test_an_answer_is_shown_as_markdown(chat: Open) -> None:
    screen = chat()
    screen.ready()
    screen.say("markdown")
    screen.wait("a quote")
    screen.ready()
    as_golden("markdown", screen)


def test_nothing_an_answer_holds_acts(chat: Open) -> None:
    """Neither as it is, nor as an entity of Markdown."""
    screen = chat()
    screen.ready()
    screen.say("evil")
    shown = screen.wait("> end")
    assert "start ^[[2J^[]0;owned^G<9B>31m <U+202E>abc <U+202E> end" in shown
    assert screen._run("display-message", "-p", "#{pane_title}").strip() != "owned"  # pyright: ignore


def test_what_is_finished_scrolls_away_once_and_the_rest_is_drawn_again(
    chat: Open, fast_dir: Path
) -> None:
    screen = chat()
    screen.ready()
    screen.say("slow")
    screen.wait("waits here")
    as_golden("streaming", screen)
    go(screen, fast_dir, "slow")
    screen.wait("to its end")
    screen.ready()
    as_golden("streamed", screen)
    for once in ("The first paragraph is finished.", "and goes on", "> slow"):
        assert screen.all().count(once) == 1


def test_a_long_answer_is_whole_in_the_scrollback(chat: Open) -> None:
    screen = chat()
    screen.ready()
    screen.say("long 400")
    screen.wait("paragraph 399")
    screen.ready()
    found = [int(n) for n in re.findall(r"paragraph (\d+) of many", screen.all())]
    assert found == [*range(400)]


def test_the_window_is_resized_while_an_answer_comes(chat: Open, fast_dir: Path) -> None:
    screen = chat()
    screen.ready()
    screen.say("slow")
    screen.wait("waits here")
    for columns, rows in ((44, 20), (25, 12), (70, 24)):
        screen.resize(columns, rows)
        screen.wait(lambda s, c=columns: status(s) <= c and prompts(s) == 1)
    screen.wait(lambda s: any(len(row) > 60 for row in s.splitlines()))
    as_golden("resized", screen)
    go(screen, fast_dir, "slow")
    screen.wait("end.")
    screen.ready()
    assert screen.all().count("The first paragraph is finished.") == 1
    assert len(re.findall("scripted/told", screen.all())) == 1
    assert len(re.findall("waits here,", " ".join(screen.all().split()))) == 4


def status(screen: str) -> int:
    return max((len(row) for row in screen.splitlines() if "scripted" in row), default=999)


def prompts(screen: str) -> int:
    return sum(row == ">" for row in screen.splitlines())


def test_a_narrow_window(chat: Open) -> None:
    screen = chat(columns=20, rows=14)
    screen.ready()
    screen.say("echo words that need several rows here")
    screen.wait("rows here", gone="Ctrl-C")
    assert all(len(row) <= 20 for row in screen.screen().splitlines())
    screen.ready()
    as_golden("narrow", screen)


def test_wide_characters(chat: Open) -> None:
    screen = chat(columns=60)
    screen.ready()
    screen.type("wide 日本語 🎉")
    screen.wait("日本語 🎉")
    screen.key("Enter")
    screen.wait("done")
    screen.ready()
    as_golden("wide", screen)


def test_ctrl_c_stops_the_answer_and_keeps_it(chat: Open, fast_dir: Path) -> None:
    """What was said is kept, and the conversation goes on."""
    screen = chat()
    screen.ready()
    screen.say("slow")
    screen.wait("waits here")
    screen.key("C-c")
    screen.wait("stopped", gone="Ctrl-C stops")
    screen.ready()
    as_golden("stopped", screen)
    screen.say("echo still here")
    screen.wait(lambda s: s.count("still here") == 2)
    kept = texts(fast_dir)
    assert kept[1][0] == "assistant"
    assert "first paragraph" in kept[1][1]


def test_ctrl_c_twice_leaves(chat: Open) -> None:
    screen = chat()
    screen.ready()
    screen.key("C-c")
    screen.wait("Ctrl-C again leaves")
    screen.key("C-c")
    assert screen.status == 0


def test_leaving_says_how_to_come_back_and_nothing_said_leaves_nothing(
    chat: Open, fast_dir: Path
) -> None:
    first = chat()
    first.ready()
    first.key("C-d")
    assert first.status == 0
    assert "come back" not in first.all()
    with clew.open(fast_dir / "clew.db") as store:
        assert not store.profile("default").list().items
    second = chat()
    second.ready()
    second.say("echo hello")
    second.wait(lambda s: s.count("hello") == 2)
    second.ready()
    second.key("C-d")
    assert second.status == 0
    found = re.search(r"chat --resume (\w{8})", second.all())
    assert found is not None
    third = chat("--resume", found[1])
    third.wait("2 messages")
    third.ready()
    as_golden("resumed", third)


def test_continue_finds_the_conversation_of_the_folder(chat: Open) -> None:
    first = chat()
    first.ready()
    first.say("echo the first of them")
    first.wait(lambda s: s.count("the first of them") == 2)
    first.ready()
    first.key("C-d")
    assert first.status == 0
    again = chat("--continue")
    assert "> echo the first of them" in again.wait("2 messages")


def test_a_paste_of_ten_thousand_lines_is_one_message(chat: Open, fast_dir: Path) -> None:
    screen = chat()
    screen.ready()
    screen.type("size ")
    lines = "\n".join(f"line {n} of a paste" for n in range(10_000))
    screen.paste(lines)
    screen.wait("[pasted 10,000 lines]")
    as_golden("pasted", screen)
    screen.key("Enter")
    screen.wait("10,000 lines came, the last is line 9999 of a paste")
    assert texts(fast_dir)[0] == ("user", f"size {lines}")
    assert "[pasted 10,000 lines]" in screen.all()


def test_a_short_paste_and_keys_make_several_lines(chat: Open, fast_dir: Path) -> None:
    """Nothing of a paste is sent by itself."""
    screen = chat()
    screen.ready()
    screen.paste("size one\ntwo\n")
    screen.type("three")
    screen.key("C-j")
    screen.type("four\\")
    screen.key("Enter")
    screen.type("five")
    screen.key("M-Enter")
    screen.type("six")
    screen.wait("six")
    as_golden("lines", screen)
    screen.key("Enter")
    screen.wait("lines came")
    assert texts(fast_dir)[0] == ("user", "size one\ntwo\nthree\nfour\nfive\nsix")


def test_typing_while_an_answer_comes(chat: Open, fast_dir: Path) -> None:
    """It waits for the next step, and is answered."""
    screen = chat()
    screen.ready()
    screen.say("slow")
    screen.wait("waits here")
    screen.say("echo and this too")
    screen.wait("1 waiting")
    as_golden("steering", screen)
    go(screen, fast_dir, "slow")
    screen.wait(lambda s: s.count("and this too") == 2, gone="1 waiting")
    assert [role for role, _ in texts(fast_dir)] == ["user", "assistant", "user", "assistant"]


def test_tool_calls_are_one_line_and_are_expanded(chat: Open, fast_dir: Path) -> None:
    screen = chat()
    screen.ready()
    screen.say("tool slow")
    screen.wait("notes/slow.txt ...")
    as_golden("tool-running", screen)
    go(screen, fast_dir, "tool")
    screen.wait("The tool said")
    screen.ready()
    screen.say("tool bad")
    screen.wait("The tool said: no such file")
    screen.ready()
    screen.key("C-o")
    screen.wait("✗ look")
    screen.ready()
    as_golden("tools", screen)


def test_a_tool_is_asked_about(chat: Open, fast_dir: Path) -> None:
    """No is what is done unless the person says yes."""
    screen = chat()
    screen.ready()
    screen.say("ask one")
    screen.wait("y once")
    as_golden("asked", screen)
    screen.type("and more")  # its first letter is no answer
    screen.wait("> and more")
    screen.key("C-u")
    screen.wait("y once", gone="and more")
    screen.key("y")
    screen.wait("The tool said: line one of notes/one.txt")
    screen.ready()
    screen.say("ask two")
    screen.wait("y once")
    screen.key("Enter")
    screen.wait("refused")
    screen.ready()
    assert "line one of notes/two.txt" not in screen.all()
    screen.say("ask three")
    screen.wait("y once")
    screen.key("a")
    screen.wait("notes/three.txt line two")
    screen.ready()
    screen.say("ask four")
    screen.wait("notes/four.txt line two")
    assert screen.all().count("Allow") == 0


def test_stopping_at_a_question(chat: Open) -> None:
    """The call is not run, and what was said meanwhile is answered."""
    screen = chat()
    screen.ready()
    screen.say("ask one")
    screen.wait("y once")
    screen.say("echo said meanwhile")
    screen.wait("until you have answered")
    screen.key("C-c")
    screen.wait(lambda s: s.count("said meanwhile") == 2, gone="stopping")
    assert "stopped; it was not run" in screen.all()
    assert "line one of notes/one.txt" not in screen.all()


def test_two_chats_in_one_conversation(chat: Open, fast_dir: Path) -> None:
    """What the second says is answered by the first, and both show the answer."""
    first = chat()
    first.ready()
    first.say("echo a talk of two")
    first.wait(lambda s: s.count("talk of two") == 2)
    second = chat("--resume", "TALK of")
    second.ready()
    first.say("slow")
    first.wait("waits here")
    second.say("echo from the second")
    second.wait("another process has the conversation")
    go(first, fast_dir, "slow")
    second.wait(lambda s: s.count("from the second") == 3, gone="1 waiting")
    assert "and goes on to its end" in second.all()
    first.wait("from the second")
    assert [role for role, _ in texts(fast_dir)] == ["user", "assistant"] * 3


def test_a_question_survives_the_chat(chat: Open) -> None:
    """It is asked again by the next processes; what one is told the other sees."""
    first = chat()
    first.ready()
    first.say("ask one")
    first.wait("y once")
    first.key("C-d")
    assert first.status == 0
    again, third = chat("--continue"), chat("--continue")
    third.wait("y once")
    again.wait("y once")
    as_golden("asked-again", again)
    again.key("y")
    again.wait("The tool said: line one of notes/one.txt")
    assert "answered elsewhere" in third.wait("The tool said: line one", gone="Allow")


def test_a_killed_chat_goes_on_in_the_next(chat: Open, fast_dir: Path) -> None:
    """The message was durable before the model was asked."""
    first = chat()
    first.ready()
    first.say("slow")
    first.wait("waits here")
    os.kill(first.pid, signal.SIGKILL)
    assert first.status == 128 + signal.SIGKILL
    go(first, fast_dir, "slow")
    again = chat("--continue")
    again.wait("to its end")
    again.ready()
    assert [role for role, _ in texts(fast_dir)].count("user") == 1


def test_a_signal_leaves_cleanly(chat: Open, fast_dir: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        screen = chat()
        screen.ready()
        screen.say("slow")
        screen.wait("waits here")
        os.kill(screen.pid, number)
        assert screen.status == 0
        with clew.open(fast_dir / "clew.db") as store:
            profile = store.profile("default")
            newest = profile.open(profile.list(limit=1).items[0].id)
            assert newest.info().turn is None
            assert [m.role for m in newest.messages()] == [Role.USER, Role.ASSISTANT]


def test_a_provider_that_fails_ends_the_turn_and_not_the_chat(chat: Open) -> None:
    screen = chat()
    screen.ready()
    screen.say("fail now")
    screen.wait("scripted refuses the key; set OTHER_KEY")
    assert screen.ready().count("refuses the key") == 1
    screen.say("echo works again")
    screen.wait(lambda s: s.count("works again") == 2)


def test_no_colours(chat: Open) -> None:
    screen = chat(NO_COLOR="1")
    screen.ready()
    screen.say("markdown")
    screen.wait("a quote")
    screen.ready()
    assert not re.search(r"\x1b\[[\d;]*3\dm", screen.screen(escapes=True))


def test_the_first_message_can_stand_on_the_command_line(chat: Open) -> None:
    screen = chat("echo", "from", "the", "shell")
    screen.wait(lambda s: s.count("from the shell") == 2)


def test_commands_are_completed_and_run(chat: Open) -> None:
    screen = chat()
    screen.ready()
    screen.key("C-z")  # there is no shell to go back to, and it is no letter
    screen._run("send-keys", "-H", "1b", "5b", "33", "31", "6d")  # pyright: ignore
    screen.type("/he")
    screen.wait("Show the commands")
    screen.key("Tab", "Enter")
    screen.wait("/quit")
    assert "^Z" not in screen.all()
    assert "Traceback" not in screen.all()
    screen.say("/nothing")
    screen.wait("there is no command")
    screen.say("/quit")
    assert screen.status == 0


def test_messages_that_are_typed_before_it_is_ready_are_sent_in_their_order(
    chat: Open, fast_dir: Path
) -> None:
    screen = chat()
    screen.wait(">")
    for n in range(3):
        screen.type(f"echo number {n}")
        screen.key("Enter")
    screen.wait(lambda s: s.count("number 2") >= 2)
    screen.ready()
    assert [text for role, text in texts(fast_dir) if role == "user"] == [
        f"echo number {n}" for n in range(3)
    ]
    with clew.open(fast_dir / "clew.db") as store:
        assert len(store.profile("default").list().items) == 1


def test_a_conversation_that_is_not_there(chat: Open) -> None:
    screen = chat("--resume", "nothing-like-it")
    assert screen.status == 3
    assert "clew: no conversation 'nothing-like-it'" in screen.all()


def test_a_dumb_terminal(chat: Open, fast_dir: Path) -> None:
    """Lines in, lines out; questions are asked on a line too."""
    screen = chat(TERM="dumb")
    screen.wait(">")
    screen.type("ask one")
    screen.key("Enter")
    screen.wait("Allow it?")
    screen.type("y")
    screen.key("Enter")
    screen.wait("The tool said: line one of notes/one.txt")
    screen.key("C-d")
    assert screen.status == 0
    assert "\x1b" not in screen.screen(escapes=True)
    assert "\nTo come back: clew chat --resume" in screen.all()


def test_ctrl_c_at_a_dumb_terminal(chat: Open) -> None:
    """It leaves at once, and does not wait for a line."""
    screen = chat(TERM="dumb")
    screen.wait(">")
    screen.key("C-c")
    assert screen.status == 130


def test_a_terminal_that_goes_away_ends_the_chat(chat: Open, fast_dir: Path) -> None:
    screen = chat()
    screen.ready()
    screen.say("slow")
    screen.wait("waits here")
    pid = screen.pid
    screen.close()
    deadline = time.monotonic() + PATIENCE
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs(pid)
    with clew.open(fast_dir / "clew.db") as store:
        profile = store.profile("default")
        assert profile.open(profile.list().items[0].id).info().turn is None


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
