"""Standing instructions, and what only sounds like one: reports, complaints, requests about one
thing, answers to what the agent said last."""

from __future__ import annotations

import pytest
from talks import agent, rows, said, user

STANDING = """\
Make sure every migration can be rolled back.
Ensure that no test needs the network.
Commits should be small.
You should keep the changelog up to date.
Replies have to fit on one screen.
All new endpoints should have a rate limit.
Pull requests are to be opened as drafts.
Be sure to always run the type checker.
please don't rename public functions
never touch the lock file by hand
I think you should never guess a version number.
from now on, write the tests first
no emojis in commit messages, please
don't start the server yourself, i run it
invalid settings must NEVER crash the app
I don't want long explanations.
Whenever the schema changes, bump the version.
whatever you do, do not delete the backups
Any function over 40 lines has to be split.
In every reply, name the files you changed.
use tabs, never spaces
Please keep the old names as aliases.
Each module should have a docstring.
Code comments should say why, not what.
You have to ask before installing anything.
Try to avoid global state.
Error messages should always name the file.
Nothing in vendor/ should be edited.
i saw you used sudo: don't do that again, ever
When you fix a bug, add a test for it.
Only the release script may write to dist/.
Tests must not sleep.
This should never have more than ten rows.
""".splitlines()
ONE_OFF = """\
I noticed a slow page this morning, find out whether the cache has to do with it.
hm, i clicked save and lost my text, that should never happen.
no, the border should stay
we should be able to ship after that
let me look at it myself, it should be ready in a minute
I think the parser is not allowed to see that token, have a look
the sidebar should have the colour of the header
i tried it again and the cursor has to jump twice
ok, I guess the second column has to go
bash: no such job in this shell
it should be a bit darker
I believe the loop must end before that, can you check?
we had no logs at all yesterday
This should not have happened.
that should not have been deleted
make sure the banner is blue
the spinner has to stop when the page is loaded
i suppose that is required by the linter
the title should be "Orders", and the subtitle a little smaller
I'll never understand how this works
""".splitlines()


@pytest.mark.parametrize("text", STANDING)
def test_a_standing_instruction_is_a_rule(text: str) -> None:
    assert rows(said(text), "rule")


@pytest.mark.parametrize("text", ONE_OFF)
def test_what_is_said_of_one_thing_is_no_rule(text: str) -> None:
    assert not rows(said(text), "rule")


def test_a_request_in_lower_case_is_taken_apart_as_well() -> None:
    talk = [user(1, "the list is too long, cut it. and never show more than ten rows.")]
    assert [row.text for row in rows(talk, "rule")] == ["and never show more than ten rows."]


def test_how_one_thing_should_be_ends_with_its_answer() -> None:
    (row,) = rows([user(1, "the sidebar should have the colour of the header")], "ask")
    assert row.state == "open"


@pytest.mark.parametrize(("rule", "once"), [
    ("Always reply in German.", "For this one reply only, answer in English."),
    ("Always use metric units.", "For this table use imperial units."),
    ("Never use the staging database.", "Just this once, use the staging database."),
    ("The audit log uses Kafka.", "For the queue use Redis instead of Kafka."),
])  # fmt: skip
def test_what_is_meant_for_one_thing_replaces_nothing(rule: str, once: str) -> None:
    talk = [user(1, rule), agent(2, "Noted, from here on."), user(3, once), agent(4, "Here it is.")]
    assert rule in [row.text for row in rows(talk)]


def test_never_mind_is_no_rule() -> None:
    assert rows([user(1, "Never mind.")]) == []


@pytest.mark.parametrize("text", [
    "Antworte immer auf Deutsch und pushe niemals auf den Hauptzweig.", "不要删除 data 目录。",
])  # fmt: skip
def test_what_is_said_in_another_language_is_kept_and_never_done(text: str) -> None:
    found = rows([user(1, text), agent(2, "Verstanden, so mache ich es.")])
    assert text in [row.text for row in found]
    assert "done" not in [row.kind for row in found]
