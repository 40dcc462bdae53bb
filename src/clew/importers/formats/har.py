"""Recordings of a browser or proxy (HAR) with exchanges of OpenAI's APIs in them.

A request holds the whole conversation so far. One that begins with the whole input of an earlier
request is the same conversation, grown; what is said there already is not said again. One that asks
the same again and got another answer is a branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from clew.domain.messages import Role
from clew.importers.chain import Place
from clew.importers.decode import decode
from clew.importers.fields import decoded, lasted, listed, mapping, moment, text, whole
from clew.importers.formats.api_answers import Answer, chat_answer, responses_answer
from clew.importers.formats.api_requests import Asked, asked_chat, asked_responses
from clew.importers.formats.chat_messages import chat_about, chat_said
from clew.importers.formats.responses_items import Said, about, all_said
from clew.importers.formats.steps import Walk, places
from clew.importers.objects import document
from clew.importers.probe import Probe
from clew.importers.records import Chat, Damaged, Event, Record, Skipped, Spent, Used
from clew.importers.source import Source

Api = Literal["chat", "responses"]
_PATH = re.compile(r"/(?:chat/completions|responses)(?=[?#]|$)")
_URL = re.compile(rb'"url"\s*:\s*"[^"]{0,2000}?/(chat/completions|responses)["?#]')


class Exchange(NamedTuple):
    """A request and what came back."""

    api: Api
    asked: Asked
    answer: Answer
    at: int | None
    latency: int | None
    """Microseconds."""


class End(NamedTuple):
    """Where a conversation was when a request or an answer ended."""

    chat: str
    place: Place
    last: str | None


def api_of(probe: Probe) -> Api | None:
    """Of a recording: the API of the first exchange in its head; Chat Completions when the head
    shows none. None for what is no recording."""
    if probe.keys != frozenset(("log",)) or b'"entries"' not in probe.head:
        return None
    found = _URL.search(probe.head)
    return "responses" if found and found[1] == b"responses" else "chat"


def read_har(source: Source) -> Iterator[Event]:
    """The conversations of a recording."""
    recorded = document(source)
    if isinstance(recorded, Damaged):
        yield recorded
        return
    log = mapping(recorded.get("log"))
    recording = _Recording(source.id)
    for at, each in enumerate(listed(log.get("entries")), 1):
        try:
            exchange = _exchange(mapping(each))
        except ValueError as error:
            yield Damaged(f"entry {at}", str(error))
            continue
        if exchange is None:
            yield Skipped("request to something else")
        else:
            yield from recording.exchange(exchange)


def _exchange(entry: dict[str, Any]) -> Exchange | None:
    """An entry that is an exchange of one of the APIs. ValueError."""
    request, response = mapping(entry.get("request")), mapping(entry.get("response"))
    path = _PATH.search(text(request.get("url")) or "")
    body = text(mapping(request.get("postData")).get("text"))
    if path is None or request.get("method") != "POST" or body is None:
        return None
    value = mapping(decode(body))
    reply = _reply(mapping(response.get("content")))
    if (whole(response.get("status")) or 200) >= 400:
        reply = ""
    api: Api = "responses" if path[0] == "/responses" else "chat"
    answer = (chat_answer if api == "chat" else responses_answer)(reply) if reply else Answer([])
    return Exchange(
        api,
        asked_chat(value) if api == "chat" else asked_responses(value),
        answer,
        moment(entry.get("startedDateTime")),
        lasted(entry.get("time")),
    )


def _reply(content: dict[str, Any]) -> str:
    body = text(content.get("text")) or ""
    if content.get("encoding") != "base64":
        return body
    return (decoded(body) or b"").decode("utf-8", "replace")


class _Recording:
    """The conversations met so far."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._count = 0
        self._calls = 0
        self._ends: dict[str, End] = {}
        """Ends of requests, by their places."""
        self._answers: dict[str, End] = {}
        """Ends of answers, by the ids of responses."""
        self._records: dict[str, set[str]] = {}

    def exchange(self, exchange: Exchange) -> Iterator[Event]:
        """What one exchange adds."""
        self._calls += 1
        asked, answer = exchange.asked, exchange.answer
        model = answer.model or asked.model
        found = [_said(exchange.api, item, None) for item in asked.items]
        put = [message for messages in found for message in messages]
        if left := sum(not messages for messages in found):
            yield Skipped("item of no message", left)
        if answer.left_out:
            yield Skipped("further choice", answer.left_out)
        known = self._known(asked, put)
        if known is None and not put:
            yield Skipped("exchange without messages")
            return
        if known is None:
            yield self._new(exchange, model)
        walk = Walk(self._chat if known is None else known.chat, *(known or (0, None, None))[1:])
        for message in put:
            yield from self._fresh(walk.step(message, created_at=exchange.at))
        self._ends[walk.place.id] = End(walk.chat, Place(), None)
        yield from self._answered(walk, exchange, model)

    @property
    def _chat(self) -> str:
        return self._id if self._count < 2 else f"{self._id}#{self._count}"

    def _new(self, exchange: Exchange, model: str | None) -> Chat:
        self._count += 1
        self._records[self._chat] = set()
        return Chat(
            id=self._chat, created_at=exchange.at, model=model,
            prompt=exchange.asked.prompt, tools=exchange.asked.tools,
        )  # fmt: skip

    def _known(self, asked: Asked, put: list[Said]) -> End | None:
        """Where the conversation of a request stands before its input; None for a new one."""
        for name in (asked.previous, asked.conversation):
            if name is not None and name in self._answers:
                return self._answers[name]
        for place in reversed(places(put)):
            if place.id in self._ends:
                return self._ends[place.id]
        return None

    def _fresh(self, record: Record) -> Iterator[Record]:
        ids = self._records[record.chat]
        if record.id is not None and record.id not in ids:
            ids.add(record.id)
            yield record

    def _answered(self, walk: Walk, exchange: Exchange, model: str | None) -> Iterator[Event]:
        answer, asked = exchange.answer, exchange.asked
        at = exchange.at
        if at is not None and exchange.latency:
            at += exchange.latency
        spent = None
        if answer.usage is not None:
            spent = Spent(model=model or "unknown", usage=answer.usage, latency=exchange.latency)
        walk.begin_answer()
        for item in answer.said:
            facts = about(item) if exchange.api == "responses" else chat_about(item)
            for message in _said(exchange.api, item, model):
                paid = spent if message.role is Role.ASSISTANT else None
                record = walk.step(message, created_at=at, model=model, spent=paid, meta=facts)
                for new in self._fresh(record):
                    yield new
                    spent = None if paid else spent
        if spent is not None:
            yield Used(chat=walk.chat, group=f"call {self._calls}", spent=spent, at=at)
        for name in (answer.id, asked.conversation):
            if name is not None:
                self._answers[name] = End(walk.chat, walk.place, walk.last)


def _said(api: Api, item: dict[str, Any], model: str | None) -> tuple[Said, ...]:
    if api == "responses":
        return all_said(item, model)
    message = chat_said(item, model)
    return () if message is None else (message,)
