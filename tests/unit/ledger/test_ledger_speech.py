"""What prose is taken for: rules, requests, values, decisions, things left open."""

from __future__ import annotations

import pytest
from talks import agent, message, rows, said, user

from clew.compaction.ledger.slots import claims
from clew.domain.messages import Role
from clew.domain.parts import Text

RULES = """\
Nobody is allowed to restart the primary without telling me.
Please refrain from editing generated files.
I'd rather you kept explanations to a minimum.
Under no condition should credentials end up in the logs.
When in doubt, leave the file alone.
Each commit has to reference a ticket.
You must run the linter before every push.
My preference is for small pull requests.
Tests have to stay green at all times.
Don't ever force-push.
Stay out of the vendor directory.
Every response should contain a short summary.
I want all dates as ISO 8601.
Always quote the file path you are talking about.
Deployments require sign-off from the ops team.
Leave my config files untouched.
Don't add new dependencies without asking.
It is forbidden to call the production API from tests.
Use British spelling throughout.
No comments in the code, please.
Avoid mocking the database.
Keep the public API backwards compatible.
If a test fails, stop and tell me.
Only touch files under src/.
Treat everything in /secrets as off limits.
Never include my name in your replies.
Before you run a command, show it to me.
When you give measurements, use metric, not imperial.
You may not touch the CI config.
Always keep a backup.
It's important that you never guess a phone number.
Do everything in small steps from now on.
Don't write to the production bucket.
All replies need to be in lower case.
Whenever you edit a file, run the formatter.
I don't want any emojis in the output.
Be careful to never log passwords.
Only use the standard library.
Nothing leaves this machine.
You should always explain your reasoning.
For the rest of this session. Don't write my phone number into any file.
""".splitlines()

ASKS = """\
Fix the login bug.
ok, make muted a little brighter
Can you add a test for the parser?
Why does the build fail on Windows?
please rename the helper
now update the README and the changelog
what color are the code blocks using?
Investigate the slow query and report back.
""".splitlines()

VALUES = {
    "Set the session TTL to 900 seconds.": ("option:session ttl", "900 seconds"),
    "The staging server listens on port 4431.": ("port:server staging", "4431"),
    "The port of server 12 is 8012.": ("option:12 port server", "8012"),
    "Our deadline moved from May 3 to May 10.": ("date:", "May 10"),
    "Raise the pool size from 8 to 16, please.": ("option:pool size", "16"),
    "The wiki lives at https://wiki.acme.io/home.": ("url:wiki", "https://wiki.acme.io/home"),
    "Lena Vogel owns the billing service.": ("owner:billing service", "Lena Vogel"),
    "The project is codenamed Heron.": ("name:project", "Heron"),
    "We branched from commit 9f31c2ab.": ("commit:", "9f31c2ab"),
    "Report all times in Europe/Oslo.": ("timezone:", "Europe/Oslo"),
    "Keep travel spending under six hundred euros.": ("money:travel", "six hundred euros"),
    "cache TTL: 5 minutes": ("option:cache ttl", "5 minutes"),
    "The API key for staging is sk-test-118.": ("option:api key staging", "sk-test-118"),
    "The standup starts at 09:15.": ("time:standup start", "09:15"),
    "Reply in British English.": ("language:", "British English"),
    "Our EU region is eu-central-1.": ("region:eu", "eu-central-1"),
    "Only Dana Roth may approve refunds.": ("approver:refund", "Dana Roth"),
    "We are in phase 2 of 5 of the migration.": ("progress:migration", "2 of 5"),
}


@pytest.mark.parametrize("text", RULES)
def test_rules(text: str) -> None:
    (row,) = rows(said(text), "rule")
    assert row.text == text


@pytest.mark.parametrize("text", ASKS)
def test_requests_of_the_moment_are_no_rules(text: str) -> None:
    found = rows([user(1, text)])
    assert [row.kind for row in found if row.kind != "file"] == ["ask"]
    assert found[0].text == text


@pytest.mark.parametrize("text", VALUES)
def test_values_have_a_slot(text: str) -> None:
    slot, value = VALUES[text]
    found = claims(text)
    assert [(one.slot, one.value) for one in found][:1] == [(slot, value)]


def test_one_message_is_taken_apart() -> None:
    text = (
        "Please fix SESS-118: users get logged out after 12 minutes. The staging server listens "
        "on port 4431. Never touch src/db directly. Reply in British English."
    )
    found = {row.kind: row.text for row in rows([user(1, text)])}
    assert found["ask"] == "Please fix SESS-118: users get logged out after 12 minutes."
    assert found["fact"] == "The staging server listens on port 4431."
    assert len(rows([user(1, text)], "rule")) == 2


def test_what_refers_back_stands_with_what_it_refers_to() -> None:
    (row,) = rows(said("Budget cap is $500 total. Never exceed it without approval."), "rule")
    assert row.text == "Budget cap is $500 total. Never exceed it without approval."


def test_headings_in_capitals_and_list_marks_are_taken_off() -> None:
    texts = [row.text for row in rows(said("NOTE: never delete the logs.\n- [ ] ship it today"))]
    assert texts[0] == "never delete the logs."


def test_code_is_not_prose() -> None:
    text = "Look at this:\n```python\n# never do this\nport = 8080\n```\nWhat is wrong with it?"
    assert [row.kind for row in rows([user(1, text)]) if row.kind != "file"] == ["ask", "note"][:1]


def test_a_pasted_log_makes_no_rules() -> None:
    log = "\n".join(
        f"at handler{n} (/srv/app/node_modules/x/y.js:{n}:1) must never" for n in range(20)
    )
    assert not rows([user(1, f"It crashed again.\n{log}")], "rule", "fact", "decision")


def test_other_languages_are_kept_as_they_stand() -> None:
    texts = [
        "Bitte niemals direkt in die Datenbank schreiben, sondern immer über den Dienst.",
        "会議は三時からです。資料を準備してください。",
        "Никогда не удаляй файлы журнала без моего разрешения.",
    ]
    for text in texts:
        assert any(text[:15] in row.text for row in rows([user(1, text)]))


def test_acknowledgements_are_nothing() -> None:
    assert not rows(said("ok", "thanks, perfect!", "continue", "/mode"))


def test_system_messages_give_rules_only() -> None:
    talk = [message(1, Role.SYSTEM, Text("You are a coding agent. Never push to main."))]
    assert [(row.kind, row.text) for row in rows(talk)] == [("rule", "Never push to main.")]


def test_what_an_agent_found_and_left_open() -> None:
    talk = [
        agent(1, "Let me look at the file."),
        agent(2, "Root cause: `refresh()` compares naive and aware datetimes."),
        agent(3, "I created branch fix/ttl-12 from commit 9f31c2ab."),
        agent(4, "The regression test is still missing."),
    ]
    kinds = [(row.seq, row.kind) for row in rows(talk)]
    assert kinds == [(2, "decision"), (3, "decision"), (4, "ask")]
