"""clew show of what other tools made: joined records, sub-agents, branches, parts of the log."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

import pytest

import clew
from clew import Draft, Image, Inline, Reasoning, Role, Text, ToolCall, ToolResult

from .helpers import REAL, Demo, Run

AT = 1_750_000_000_000_000


class Told(NamedTuple):
    """A conversation as an importer leaves it, and what began in it."""

    id: str
    agent: str
    review: str
    lost: str
    other_way: str


@pytest.fixture
def told(demo: Demo) -> Told:
    with demo.open() as store:
        profile = store.profile("default")
        main = profile.create(title="The indexer", model="opus", source="claude-code")

        def add(role: Role, *parts: Any, group: str | None = None, **facts: str) -> None:
            seq = main.info().head + 1
            main.append([
                Draft(role=role, parts=parts, api_group=group, created_at=AT + seq * 1_000_000,
                      meta={"import": facts} if facts else None)
            ])  # fmt: skip

        add(Role.SYSTEM, Text("You are careful.\n" + "A rule.\n" * 50))
        add(
            Role.USER,
            Text("Does a crash lose a segment?"),
            Image(data=b"x" * 3000, width=8, height=4),
        )
        add(Role.ASSISTANT, Reasoning("The renames.\nRead first."), group="m1", model="opus")
        add(Role.ASSISTANT, Text("I read it."), group="m1", model="opus")
        add(Role.ASSISTANT, ToolCall("a", "Read", '{"path": "x.py"}'), group="m1", model="opus")
        add(Role.TOOL, ToolResult("a", "one line"))
        add(Role.ASSISTANT, ToolCall("b", "Task", "{}"), group="m1", model="haiku", cwd="/app/src")
        add(Role.TOOL, ToolResult("b", "\n".join(f"row {n}" for n in range(40))))
        add(Role.ASSISTANT, Text("No."), group="m2", model="haiku", cwd="/app/src")
        add(Role.USER, Text("And two?"), git_branch="fix")
        add(Role.ASSISTANT, Text("No again."))
        agent = main.delegate(clew.NewConversation(
            title="Callers", meta={"import": {"call": "b"}}, created_at=AT))  # fmt: skip
        agent.append([clew.user("find"), clew.assistant("three")])
        lost = main.delegate(clew.NewConversation(
            title="Lost", meta={"import": {"call": "gone"}}, created_at=AT))  # fmt: skip
        review = main.delegate(clew.NewConversation(title="Review", created_at=AT + 9_500_000))
        attempt = main.open_attempt()
        summary = Inline(Role.USER, (Text("What was said so far.\n" + "More.\n" * 9),))
        body = (summary, clew.Ref(9, 9))
        main.commit_attempt(
            attempt.number,
            clew.Proposal(covers_to=9, body=body, tokens_before=900, tokens_after=90),
        )
        branch = main.branch(main.message(9).uid, new=clew.NewConversation(title="Another way"))
        branch.append([clew.user("And fsync?"), clew.assistant("2 ms.")])
        return Told(main.id, agent.id, review.id, lost.id, branch.id)


def test_records_of_one_message_are_one(told: Told, run: Run) -> None:
    shown = run("show", told.id).stdout
    block = shown[shown.index("assistant  #3-5,7") : shown.index("assistant  #9")]
    order = ["thinking  The renames.", "I read it.", "→ Read", "→ Task",
             "← Read  one line  #6", "← Task  row 0  +39 lines, 269 B  #8"]  # fmt: skip
    places = [block.index(piece) for piece in order]
    assert places == sorted(places)
    assert "tool" not in block
    assert "#4 " not in shown
    log = run("show", told.id, "--log").stdout
    assert re.search(r"tool  #6  .*", log)
    assert log.count("one message with #3") == 3


def test_a_sub_agent_stands_under_its_call(told: Told, run: Run) -> None:
    shown = run("show", told.id).stdout
    line = f"    ↳ sub-agent {told.agent[:8]}: Callers, 2 messages  clew show {told.agent[:8]}\n"
    assert shown.index("→ Task") < shown.index(line) < shown.index("← Task")


def test_the_sub_agents_of_what_a_branch_inherits(told: Told, demo: Demo, run: Run) -> None:
    """Where the call is shown; what the origin did after the branch left is not the branch's."""
    other = run("show", told.other_way).stdout
    line = f"    ↳ sub-agent {told.agent[:8]}: Callers"
    assert other.index("→ Task") < other.index(line) < other.index("← Task")
    assert "Lost" not in other
    with demo.open() as store:
        store.profile("default").delete(told.id)
    assert "→ Task" in run("show", told.other_way).stdout


def test_a_call_that_began_two_sub_agents(told: Told, demo: Demo, run: Run) -> None:
    with demo.open() as store:
        new = clew.NewConversation(title="Again", meta={"import": {"call": "b"}})
        store.profile("default").open(told.id).delegate(new)
    for options in ([], ["--outline"]):
        shown = run("show", told.id, *options).stdout
        first, second = shown.index(": Callers, 2"), shown.index(": Again, 0")
        assert shown.count("\n", first, second) == 1


def test_no_sub_agents_where_no_calls_are_asked_for(told: Told, run: Run) -> None:
    shown = run("show", told.id, "--role", "user").stdout
    assert "Callers" not in shown
    assert not shown.endswith("\n\n")


def test_a_sub_agent_of_which_nobody_said_which_call(told: Told, run: Run) -> None:
    """By its time; and at the end, when it began with a call that is not there."""
    shown = run("show", told.id).stdout
    review = f"↳ sub-agent {told.review[:8]}: Review"
    assert shown.index("assistant  #9") < shown.index(review) < shown.index("user  #10")
    assert shown.index(f"↳ sub-agent {told.lost[:8]}: Lost") > shown.index("No again.")
    assert "Lost" not in run("show", told.id, "--to", 10).stdout
    assert "Review" not in run("show", told.id, "--to", 8).stdout
    assert "Review" not in run("show", told.id, "--from", 10).stdout


def test_a_branch_is_shown_where_it_leaves(told: Told, run: Run) -> None:
    shown = run("show", told.id).stdout
    assert "inside   1 branch, 3 sub-agents; --outline shows where\n" in shown
    line = f"├─ branch {told.other_way[:8]} from here: Another way, 2 messages  clew show "
    assert shown.index("assistant  #9") < shown.index(line) < shown.index("user  #10")
    assert "Another way" in run("show", told.id, "--to", 9).stdout
    assert "Another way" in run("show", told.id, "--from", 10).stdout
    assert "Another way" not in run("show", told.id, "--to", 8).stdout
    assert "Another way" not in run("show", told.id, "--from", 11).stdout
    other = run("show", told.other_way).stdout
    own = f"─── a branch of {told.id[:8]}: what follows is its own ───"
    assert other.index("assistant  #9") < other.index(own) < other.index("And fsync?")


def test_what_stands_for_a_compacted_part(told: Told, run: Run) -> None:
    shown = run("show", told.id).stdout
    divider = "─── compaction 1: stands for #1 to #9, 90 tokens instead of 900; in effect ───\n"
    folded = "  user: What was said so far.  +9 lines, 75 B\n  #9 as written\n"
    assert divider + folded in shown
    assert shown.index(divider) > shown.index("assistant  #9")
    full = run("show", told.id, "--full").stdout
    assert "  user:\n  What was said so far.\n  More.\n" in full


def test_of_many_items_the_first_and_the_last_are_shown(demo: Demo, run: Run) -> None:
    with demo.open() as store:
        conversation = store.profile("default").create()
        conversation.append([clew.user("x" * 500)])
        attempt = conversation.open_attempt()
        body = (*(Inline(Role.USER, (Text(f"item {n}"),)) for n in range(9)),
                Inline(Role.USER, (Image(url="u"),)))  # fmt: skip
        proposal = clew.Proposal(covers_to=1, body=body, tokens_before=900, tokens_after=90)
        conversation.commit_attempt(attempt.number, proposal)
        id = conversation.id
    shown = run("show", id).stdout
    said = [f"  user: item {n}\n" for n in (0, 1, 7, 8)]
    assert "".join((*said[:2], "  (5 more)\n", *said[2:], "  user: (image)\n")) in shown
    assert "item 4" in run("show", id, "--full").stdout


def test_changes_of_model_and_folder_are_said_once(told: Told, run: Run) -> None:
    notes = [row for row in run("show", told.id).stdout.splitlines() if row.startswith("· ")]
    assert notes == ["· model haiku, in /app/src", "· on branch fix"]


def test_images_and_system_prompts_are_one_line(told: Told, run: Run) -> None:
    shown = run("show", told.id).stdout
    assert "  [image image/png 8x4 2.9 KiB]\n" in shown
    assert "  You are careful.  +50 lines, 416 B\n" in shown
    assert run("show", told.id, "--full").stdout.count("A rule.") == 50


def seqs(found: Any) -> list[int]:
    return [message["seq"] for message in found["messages"]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--from", "9"], [9, 10, 11]),
        (["--to", "#2"], [1, 2]),
        (["--from", "4", "--to", "6"], [4, 5, 6]),
        (["--from", "4", "--limit", "2"], [4, 5]),
        (["--to", "6", "--last", "2"], [5, 6]),
        (["--from", "99"], []),
        (["--role", "user"], [2, 10]),
        (["--role", "user", "--role", "tool"], [2, 6, 8, 10]),
        (["--role", "user", "--last", "1"], [10]),
        (["--role", "assistant", "--from", "8"], [9, 11]),
        (["--around", "2"], [*range(1, 12)]),
        (["--around", "10", "--role", "tool"], [6, 8, 10]),
    ],
    ids=str,
)
def test_parts_of_the_log(
    told: Told, run: Run, loads: Callable[..., Any], options: list[str], expected: list[int]
) -> None:
    assert seqs(loads("show", told.id, *options)) == expected
    shown = run("show", told.id, *options).stdout
    said: list[int] = []
    for number in re.findall(r"(?m)^(?:▶ )?\w+  #([\d,-]+)|  #(\d+)$", shown):
        for piece in "".join(number).split(","):
            first, _, last = piece.partition("-")
            said += range(int(first), int(last or first) + 1)
    assert sorted(said) == expected
    if not expected:
        assert "it has #1 to #11" in shown


def test_around_a_message(demo: Demo, run: Run, loads: Any) -> None:
    """It is marked, some are beside it, and where the others are is said."""
    shown = run("show", demo.ids.long, "--around", "30").stdout
    assert re.search(r"(?m)^▶ assistant  #30  ", shown)
    assert shown.count("▶") == 1
    assert f"before: clew show {demo.ids.long[:8]} --to 24\n" in shown
    assert f"behind: clew show {demo.ids.long[:8]} --from 46\n" in shown
    found = loads("show", demo.ids.long, "--around", "#30")
    assert (found["around"], seqs(found)) == (30, [*range(25, 46)])
    uid = found["messages"][5]["uid"]
    assert loads("show", demo.ids.long, "--around", uid)["around"] == 30
    assert "before:" not in run("show", demo.ids.long, "--around", "1").stdout
    assert "behind:" not in run("show", demo.ids.long, "--around", "60").stdout


def test_around_a_result_or_a_joined_record(told: Told, run: Run) -> None:
    assert re.search(r"(?m)^▶ tool  #8  ", run("show", told.id, "--around", 8).stdout)
    assert re.search(r"(?m)^▶ assistant  #3-5,7  ", run("show", told.id, "--around", 4).stdout)


def test_around_what_is_hidden_or_replaced(demo: Demo, run: Run, loads: Any) -> None:
    refused = run("show", demo.ids.flaky, "--around", 5, code=2).stderr
    assert "#5 is hidden by cut 1; add --log to see it" in refused
    assert "▶ user  #5" in run("show", demo.ids.flaky, "--around", 5, "--log").stdout
    with demo.open() as store:
        conversation = store.profile("default").create()
        conversation.append([clew.user(f"{n}") for n in range(40)])
        conversation.append([clew.user("better", replaces=3)])
        conversation.append([clew.user("best", replaces=41)])
        id = conversation.id
    for name in (42, 41, 3):  # wherever it came from, it stands third
        found = loads("show", id, "--around", name)
        assert found["around"] == 42
        assert seqs(found)[:4] == [1, 2, 42, 4]
    assert re.search(r"(?m)^▶ user  #42  .*\n  best$", run("show", id, "--around", 41).stdout)


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (["--from", "9", "--to", "3"], "--from 9 is behind --to 3; give the smaller one first"),
        (["--from", "0"], "give 12 or #12"), (["--to", "x"], "give 12 or #12"),
        (["--around", "99"], "give one of #1 to #60"), (["--around", "x"], "give one of #1 to #60"),
        (["--role", "robot"], "'robot'"),
        *(
            (options, "exclude each other; give one of them")
            for options in (
                ["--around", "3", "--from", "1"], ["--around", "3", "--to", "1"],
                ["--around", "3", "--last", "1"], ["--around", "3", "--limit", "1"],
                ["--context", "--from", "1"], ["--context", "--around", "1"],
                ["--follow", "--to", "1"], ["--follow", "--limit", "1"], ["--outline", "--log"],
                ["--outline", "--role", "user"], ["--outline", "--last", "1"],
                ["--outline", "--context"], ["--outline", "-f"], ["--outline", "--around", "1"],
            )
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_makes_no_sense_is_refused(
    demo: Demo, run: Run, options: list[str], remedy: str
) -> None:
    for more in ([], ["--json"]):
        assert remedy in run("show", demo.ids.long, *options, *more, code=2).stderr


def test_roles_of_a_context(demo: Demo, loads: Any) -> None:
    found = loads("show", demo.ids.flaky, "--context", "--role", "user", "--role", "system")
    assert [message["role"] for message in found] == ["system", "user", "user", "user"]


def test_following_only_some_roles(demo: Demo) -> None:
    command = [sys.executable, "-c", REAL, "show", demo.ids.order, "-f", "--role", "assistant"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    with demo.open() as store:
        conversation = store.profile("default").open(demo.ids.order)
        conversation.reopen()
        conversation.append([clew.user("a question"), clew.assistant("an answer")])
        assert child.stdout is not None
        seen = ""
        while "an answer" not in seen:
            seen += child.stdout.readline()
        store.profile("default").delete(demo.ids.order)
    seen += child.communicate(timeout=20)[0]
    assert "question" not in seen
    assert "My order" not in seen


# ---------------------------------------------------------------- the outline


def test_the_outline_is_a_tree_of_turns(told: Told, demo: Demo, run: Run) -> None:
    with demo.open() as store:
        profile = store.profile("default")
        branch = profile.open(told.other_way)
        branch.branch(branch.message(10).uid, new=clew.NewConversation(title="Twig"))
        main = profile.open(told.id)
        main.cut(main.message(11).uid, by="ann")
        main.add(clew.user("Go on"))
    shown = run("show", told.id, "--outline").stdout.split("\n\n")[1]
    shown = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", shown)
    shown = re.sub(r"ann, (just now|\d+m ago)", "ann, AGO", shown)
    agent, review, lost, way = (id[:8] for id in told[1:])
    twig = re.search(r"branch (\w+) from #10: Twig", shown)
    assert twig is not None
    assert shown == "\n".join((
        "(1 message before the first of a user)",
        "#2      TIME  Does a crash lose a segment?  +7",
        f"  ↳ sub-agent {agent}: Callers, 2 messages",
        "  ≡ compaction 1: stands for #1 to #9, 90 tokens instead of 900; in effect",
        f"  ├─ branch {way} from #9: Another way, 2 messages",
        "     #10     TIME  And fsync?  +1",
        f"       ├─ branch {twig[1]} from #10: Twig, 0 messages",
        f"  ↳ sub-agent {review}: Review, 0 messages",
        "#10     TIME  And two?",
        "  ✂ cut 1 by ann, AGO: hides 1 message, to #11",
        "#12     TIME  Go on",
        f"  ↳ sub-agent {lost}: Lost, 0 messages",
        "",
    ))  # fmt: skip


def test_the_outline_as_json(told: Told, loads: Any) -> None:
    found = loads("show", told.id, "--outline")
    assert found["conversation"]["id"] == told.id
    first, second, third = found["outline"]
    assert (first["seq"], first["messages"]) == (None, 1)
    assert (second["seq"], second["at"], second["messages"]) == (2, AT + 2_000_000, 7)
    assert [one["type"] for one in second["inside"]] == [
        "conversation", "compaction", "conversation", "conversation",
    ]  # fmt: skip
    agent, compaction, branch, review = second["inside"]
    assert (agent["info"]["id"], agent["call"]) == (told.agent, "b")
    assert compaction["compaction"]["covers_to"] == 9
    assert [turn["text"] for turn in branch["inside"]] == ["And fsync?"]
    assert (review["info"]["id"], review["call"]) == (told.review, None)
    assert [one["call"] for one in third["inside"]] == ["gone"]


def test_the_outline_of_many_turns_in_a_branch(demo: Demo, run: Run) -> None:
    """A branch shows its first turns, sub-agents those that began in them."""
    with demo.open() as store:
        profile = store.profile("default")
        branch = profile.open(demo.ids.other_way)
        branch.append([clew.user(f"turn {n}") for n in range(30)])
        helper = profile.open(demo.ids.flaky).delegate(clew.NewConversation(title="Helper"))
        helper.delegate(clew.NewConversation(title="Its own")).add(clew.user("deep"))
    shown = run("show", demo.ids.flaky, "--outline").stdout
    assert "turn 11" in shown
    assert "turn 12" not in shown
    assert "     and more\n" in shown
    assert re.search(
        r"\n  ↳ sub-agent \w+: Helper, 0 messages\n     ↳ sub-agent \w+: Its own", shown
    )
    assert "deep" not in shown
    assert "turn 29" in run("show", demo.ids.other_way, "--outline").stdout


# ---------------------------------------------------------------- at once, and from a search


def test_the_first_screen_needs_not_the_rest(demo: Demo, run: Run) -> None:
    """A message far down cannot be read; who reads the first page does not notice."""
    with demo.open() as store:
        conversation = store.profile("default").create()
        for start in range(0, 3000, 500):
            conversation.append([clew.user("word " * 60 + str(start + n)) for n in range(500)])
        id = conversation.id
    with closing(sqlite3.connect(demo.path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER message_never_changes")
        connection.execute(
            "UPDATE message SET parts = x'63' WHERE seq = 2900 AND conversation_no IN "
            "(SELECT no FROM conversation WHERE id = ?)", (id,),
        )  # fmt: skip
    run("show", id, code=5)
    command = [sys.executable, "-c", REAL, "show", id]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        lines = [child.stdout.readline() for _ in range(60)]
        child.stdout.close()
        assert (child.stderr.read(), child.wait(30)) == ("", 0)
    assert sum("word word" in line for line in lines) > 10


def test_a_hit_opens_at_its_place(demo: Demo, run: Run, loads: Any) -> None:
    hit = loads("search", "scheduler", "-n", "1")[0]
    shown = run("show", hit["conversation"], "--around", hit["seq"]).stdout
    marked = shown[shown.index("▶") :].splitlines()
    assert marked[0].startswith(f"▶ {hit['role']}  #{hit['seq']}  ")
    assert "scheduler" in marked[1]
