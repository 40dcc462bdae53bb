"""Finding messages by a question."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.compaction.excerpts import excerpt
from clew.compaction.lookup import SHOWN, rank
from clew.compaction.stems import asked_words, stem, wanted
from clew.domain.messages import Message, Role
from clew.domain.parts import Part, Reasoning, Text, ToolCall, ToolResult
from clew.errors import InputError
from clew.store.search.text import matches, parse

NOISE = (
    "The deploy went through without warnings.",
    "I looked at the logs and there is nothing unusual in them.",
    "Please keep the tests fast; the suite must stay under a minute.",
    "We could also cache the answers, but let us wait for numbers.",
    "Done. The build passes on all platforms.",
)
FACTS = (
    ("The staging database listens on port 6543.", "Which port does the staging database use?"),
    ("Our codename for the release is Blue Heron.", "what is the codename of the release?"),
    ("From now on, end every reply with the ticket id.", "How should every reply end?"),
    ("We decided to retry uploads three times.", "How many retries of an upload did we decide on?"),
    ("def parse_session_ttl(value): return int(value)", "where is parseSessionTtl defined"),
    ("Das Café in der Müllerstraße öffnet um neun.", "wann öffnet das cafe in der mullerstrasse"),
    ("服务端的端口是 8080，不要改。", "端口是多少？"),
)


def message(seq: int, *parts: Part, role: Role = Role.USER) -> Message:
    return Message.of(seq=seq, uid=f"{seq:032x}", role=role, parts=parts, created_at=seq)


def log_of(*texts: str) -> list[Message]:
    return [message(seq, Text(text)) for seq, text in enumerate(texts, start=1)]


def seqs(query: str, log: list[Message], top: int = 5) -> list[int]:
    return [found.seq for found in rank(query, log, top)]


@pytest.mark.parametrize(("fact", "question"), FACTS)
def test_a_question_finds_the_sentence_that_answers_it(fact: str, question: str) -> None:
    """Among five hundred others, and although it is asked in other forms of the words."""
    chance = random.Random(1)
    log = log_of(*(chance.choice(NOISE) + f" ({n})" for n in range(500)), fact)
    assert seqs(question, log)[0] == 501


def test_messages_that_say_all_come_before_those_that_say_some() -> None:
    log = log_of("the cache is cold", "the cache of the session is cold", "session session session")
    assert seqs("session cache", log) == [2, 1, 3] or seqs("session cache", log)[0] == 2


def test_a_short_answer_stands_above_a_long_output_that_has_every_word() -> None:
    long = "\n".join(f"{word} {n}" for n in range(300) for word in ("port", "staging", "database"))
    log = log_of(long, "staging database: port 6543", *NOISE)
    assert seqs("port of the staging database", log)[0] == 2


def test_what_was_said_again_is_found_once_the_newest() -> None:
    log = log_of("the port is 1", "the port is 2", "the port is 1", "the port is 1")
    assert seqs("port", log) == [4, 2]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    log = log_of("it is called heron", *(f"port {n}" for n in range(50)))
    assert seqs("heron port", log)[0] == 1


def test_a_quoted_phrase_counts_more() -> None:
    log = log_of("end of line, then the front of it", "the front end of it", "end and front")
    assert seqs('"front end"', log)[0] == 2


def test_earlier_questions_and_their_answers_are_no_source() -> None:
    """Else the agent would find what it asked, and not what it asked for."""
    log = [
        message(1, Text("The port is 6543.")),
        message(2, ToolCall("c", "search", '{"query": "port"}'), role=Role.ASSISTANT),
        message(3, ToolResult("c", "[@1] user, 2026-01-01 00:00:00:\nThe port is 6543.")),
        message(4, ToolResult("d", "port 6543 is open", "search")),
    ]
    assert set(seqs("port", log)) == {1, 4}


def test_thinking_is_not_found_since_it_is_not_read_back() -> None:
    assert seqs("port", [message(1, Reasoning("the port?"), role=Role.ASSISTANT)]) == []


def test_calls_and_outputs_are_found() -> None:
    log = [
        message(1, ToolCall("c", "bash", '{"command": "kubectl get pods"}'), role=Role.ASSISTANT),
        message(2, ToolResult("c", "api-7f8 CrashLoopBackOff")),
    ]
    assert seqs("kubectl", log) == [1]
    assert seqs("which pod has a crash loop", log)[0] in (1, 2)
    assert seqs("CrashLoopBackOff", log) == [2]


def test_nothing_that_fits_is_nothing() -> None:
    assert rank("zebra", log_of(*NOISE)) == ()
    assert rank("zebra", []) == ()


@pytest.mark.parametrize("query", ["", "   ", "?!", "…"])
def test_a_question_without_a_word_is_refused(query: str) -> None:
    with pytest.raises(InputError, match="has no word"):
        rank(query, log_of(*NOISE))


def test_a_question_of_small_words_looks_for_them() -> None:
    assert asked_words("what is it?") == ["what", "is", "it"]
    assert asked_words("What is the port of it?") == ["port"]


def test_a_long_message_shows_its_best_part() -> None:
    text = "filler words " * 400 + "the staging port is 6543 " + "more filler " * 400
    found = rank("staging port", log_of(text))[0]
    assert "the staging port is 6543" in found.text
    assert len(found.text) <= SHOWN + 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("retries", "retry"), ("stores", "storing"), ("stored", "store"), ("running", "runs"),
        ("configuration", "configure"), ("deployment", "deployed"), ("boxes", "box"),
        ("policies", "policy"), ("addresses", "address"), ("settings", "set"),
    ],
)  # fmt: skip
def test_forms_of_a_word_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("word", "form"),
    [("run", "runs"), ("run", "running"), ("runs", "run"), ("copies", "copy"), ("copy", "copied")],
)
def test_the_candidates_hold_the_usual_forms_of_a_short_word(word: str, form: str) -> None:
    assert matches(parse(wanted(word)), form)
    assert not matches(parse(wanted("run")), "runtime")


@pytest.mark.parametrize(
    ("one", "other"),
    [("status", "state"), ("port", "porch"), ("bus", "business"), ("a1s", "a1"), ("thing", "the")],
)
def test_other_words_have_others(one: str, other: str) -> None:
    assert stem(one) != stem(other)


@given(st.from_regex("[a-z]{1,12}", fullmatch=True), st.sampled_from(["", "s", "es", "ed", "ing"]))
def test_the_candidates_hold_every_form_with_the_same_stem(base: str, ending: str) -> None:
    """What the store's search is asked for finds whatever the ranking would take for the word; of
    three letters, whose beginning would find far too much, the usual forms."""
    written = base + ending
    assert stem(written)[:2] == written[:2]
    assert matches(parse(wanted(base)), base)
    if stem(written) == stem(base):
        assert matches(parse(wanted(base)), written) or len(stem(base)) <= 4


def test_an_excerpt_is_taken_where_most_is_said() -> None:
    text = f"the port {'filler ' * 200}the port is 6543 {'filler ' * 200}"
    assert "the port is 6543" in excerpt(text, {"port": 1.0, "6543": 1.0}, 100)


@given(st.text(alphabet="ab port6543 \n\u0130ß服", max_size=600), st.integers(20, 80))
def test_an_excerpt_is_a_part_of_the_text(text: str, room: int) -> None:
    shown = excerpt(text, {"port": 1.0, "6543": 2.0}, room)
    assert shown.strip("…") in text
    assert len(shown) <= room + 2


def test_a_megabyte_is_ranked_at_once() -> None:
    chance = random.Random(2)
    words = [f"word{n}" for n in range(5000)]
    log = log_of(*(" ".join(chance.choices(words, k=90)) for _ in range(1500)), "the port is 6543")
    started = time.process_time()
    assert seqs("port", log)[0] == 1501
    assert time.process_time() - started < 60, "an expression that goes back takes hours"
