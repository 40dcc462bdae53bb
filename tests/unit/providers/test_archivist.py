"""The archivist: what it finds, how it says so, and that it never pretends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clew
from clew.config.values import ProviderConfig
from clew.domain.parts import Image, Text
from clew.domain.turns import Usage
from clew.providers.api import Body, Model, Reply, Request, TextDelta
from clew.providers.archivist import Archivist
from clew.providers.archivist_finding import SIGN
from clew.providers.errors import BadRequest
from provider_server.asking import asked, streamed

DAY = 86_400_000_000
MARCH = 1_772_600_000_000_000
"""2026-03-04, in microseconds."""
PROVIDER = Archivist("archivist", ProviderConfig(kind="archivist"), None)


class Desk:
    """A profile, a conversation in it, and somebody who asks."""

    def __init__(self, store: clew.Store) -> None:
        self.profile = store.profile("me")
        self.conv = self.profile.conversation("desk")
        self.compactor = clew.Compactor(model="archivist")

    def request(self, text: str, *parts: Any, **more: Any) -> Request:
        self.conv.append([clew.Draft(role=clew.Role.USER, parts=(Text(text), *parts))])
        context = self.compactor.context(self.conv)
        model = Model(name="archivist", provider="archivist", window=1_000_000)
        places = {"reader": self.conv, "profile": self.profile} | more
        return Request(model=model, context=context, blob=self.conv.blob, **places)

    def ask(self, text: str, *parts: Any) -> str:
        """The answer, which then stands in the log as a host leaves it there."""
        reply = asyncio.run(PROVIDER.complete(PROVIDER.render(self.request(text, *parts))))
        [said] = reply.parts
        assert isinstance(said, Text)
        self.conv.append([clew.assistant(said.text)])
        return said.text


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with clew.open(tmp_path / "clew.db") as store:
        made = Desk(store)
        old = made.profile.create(title="The move")
        old.append([
            clew.user("Which port shall staging have?", created_at=MARCH),
            clew.assistant("Staging listens on port 5433.", created_at=MARCH),
            clew.user("What about the billing job?", created_at=MARCH),
            clew.assistant("The billing job runs at 02:30 UTC.", created_at=MARCH + DAY),
        ])  # fmt: skip
        made.conv.append([
            clew.user("My dog is called Rex.", created_at=MARCH),
            clew.assistant("A fine name.", created_at=MARCH),
            clew.user("The wifi password of the cabin is trout-42.", created_at=MARCH),
        ])  # fmt: skip
        yield made


# ---------------------------------------------------------------------- what it finds


def test_it_quotes_this_conversation_with_its_reference(desk: Desk) -> None:
    answer = desk.ask("What was the wifi password again?")
    assert "[@3] you, 2026-03-04:\n\n> The wifi password of the cabin is trout-42." in answer
    assert "Rex" not in answer


def test_it_quotes_other_conversations_with_their_id_and_title(desk: Desk) -> None:
    answer = desk.ask("When does the billing job run?")
    old = next(each for each in desk.profile.list().items if each.title == "The move")
    head = f"`{old.id[:8]}` “The move” [@4] assistant, 2026-03-05:"
    assert f"{head}\n\n> The billing job runs at 02:30 UTC." in answer


def test_another_form_of_the_word_is_found_too(desk: Desk) -> None:
    assert "port 5433" in desk.ask("staging ports?")


def test_its_own_answers_and_earlier_questions_are_no_source(desk: Desk) -> None:
    """Else it would quote itself quoting."""
    for _ in range(3):
        answer = desk.ask("What was the wifi password again?")
        assert answer.count("[@") == 1
        assert answer.count("trout-42") == 1
    elsewhere = desk.profile.conversation("other")
    desk.conv = elsewhere
    assert desk.ask("What was the wifi password again?").count("trout-42") == 1


def test_what_was_taken_back_is_not_quoted(desk: Desk) -> None:
    """Hidden is hidden, for the archivist too."""
    desk.conv.cut(desk.conv.message(3).uid)
    assert "trout-42" not in desk.ask("What was the wifi password again?")


@pytest.mark.parametrize("ref", ["@1", "[@1]", "show 1", "Read message 1", "@1-2"])
def test_it_reads_a_message_back_by_its_number(desk: Desk, ref: str) -> None:
    assert "[@1] you, 2026-03-04:\n\n> My dog is called Rex." in desk.ask(ref)


def test_a_number_that_is_not_there(desk: Desk) -> None:
    assert "no message 900" in desk.ask("@900")


def test_what_is_not_there_is_said_with_what_was_looked_through(desk: Desk) -> None:
    answer = desk.ask("Where are the zebras?")
    assert "nothing about that" in answer
    assert "3 messages of this conversation and 1 other conversation;" in answer


def test_what_is_empty_was_not_looked_through(tmp_path: Path) -> None:
    with clew.open(tmp_path / "clew.db") as store:
        desk = Desk(store)
        assert "nothing here yet" in desk.ask("Where are the zebras?")
        desk.conv = desk.profile.conversation("next")
        assert "looked through 1 other conversation;" in desk.ask("Where are the lions?")


def test_a_statement_is_kept_and_said_to_be(desk: Desk) -> None:
    assert "It is kept as [@4]" in desk.ask("Remember: zebras live at Ngorongoro.")
    assert "Ngorongoro" in desk.ask("Where do the zebras live?")


def test_a_quotation_stays_one_whatever_is_in_it(desk: Desk) -> None:
    text = "zebra list:\n\n\n```python\nzebra = 1\n\n# heading\n"
    desk.conv.append([clew.assistant(text + "line\n" * 40)])
    answer = desk.ask("zebra list")
    quoted = answer.split(":\n\n")[2].split("\n\n_Looked")[0].split("\n\n---")[0]
    assert all(line.startswith(">") for line in quoted.split("\n"))
    assert len(quoted.split("\n")) <= 13


# ---------------------------------------------------------------------- what it is


@pytest.mark.parametrize(
    "text", ["hello", "Hi!", "help", "What are you?", "/help", "are you an AI"]
)
def test_who_greets_it_hears_what_it_is_and_how_to_connect_a_model(desk: Desk, text: str) -> None:
    answer = desk.ask(text)
    assert "not a language model" in answer
    for command in ("export OPENAI_API_KEY=...", "ollama pull", "clew config edit"):
        assert command in answer
    assert "@12" in answer


def test_the_first_answer_says_it_at_length_and_the_others_in_a_line(desk: Desk) -> None:
    first = desk.ask("What was the wifi password again?")
    assert "not a language model" in first
    assert "export OPENAI_API_KEY=..." in first
    second = desk.ask("When does the billing job run?")
    assert "no language model" in second
    assert "export" not in second
    assert len(second) < 400


def test_thanks_and_no_words(desk: Desk) -> None:
    assert "welcome" in desk.ask("Thanks!")
    assert "no word" in desk.ask("->")
    assert "has none" in desk.ask("", Image(data=b"x"))


# ---------------------------------------------------------------------- as a provider


def test_it_streams_its_answer_in_pieces_and_costs_nothing(desk: Desk) -> None:
    body = PROVIDER.render(desk.request("When does the billing job run?"))
    events, reply = asyncio.run(streamed(PROVIDER, body))
    assert len(events) > 10
    assert all(isinstance(event, TextDelta) for event in events)
    assert (Text("".join(event.text for event in events)),) == reply.parts
    assert (reply.stop, reply.usage, reply.cost) == ("stop", Usage(), 0.0)
    again: Reply = asyncio.run(PROVIDER.complete(body))
    assert again == reply


def test_reading_does_not_hold_up_the_loop(desk: Desk) -> None:
    """A large store takes a while; a screen must go on drawing, and stopping must be heard."""
    go_on = threading.Event()

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(desk.profile, name)

        def search(self, query: Any) -> Any:
            assert go_on.wait(30), "the loop was blocked"
            return desk.profile.search(query)

    body = PROVIDER.render(desk.request("billing job", profile=Slow()))

    async def run() -> Reply:
        answer = asyncio.create_task(PROVIDER.complete(body))
        for _ in range(3):
            await asyncio.sleep(0)
        go_on.set()
        return await answer

    assert "02:30" in asyncio.run(run()).parts[0].text  # type: ignore[union-attr]


def test_it_knows_itself_and_answers_only_what_it_rendered() -> None:
    async def run() -> None:
        assert await PROVIDER.models() == ("archivist",)
        described = await PROVIDER.describe("archivist")
        assert described is not None
        assert (described.window, described.tools) == (1_000_000, False)
        assert await PROVIDER.count(PROVIDER.render(asked())) == 0
        with pytest.raises(BadRequest):
            await PROVIDER.complete(Body({"model": "archivist"}))
        await PROVIDER.close()

    asyncio.run(run())


def test_without_a_store_it_still_says_what_it_is() -> None:
    reply = asyncio.run(PROVIDER.complete(PROVIDER.render(asked())))
    assert SIGN in reply.parts[0].text  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with clew.open(tmp_path_factory.mktemp("archivist") / "clew.db") as store:
        made = Desk(store)
        made.conv.append([clew.user("The quick brown fox."), clew.assistant("It jumps.")])
        yield made


@given(text=st.text(max_size=60) | st.from_regex(r"\A(show |@)?\[?@?[0-9+, -]{1,20}\]?\Z"))
def test_every_question_has_an_answer(shared: Desk, text: str) -> None:
    answer = shared.ask(text)
    assert answer.startswith(SIGN)
    assert "language model" in answer
