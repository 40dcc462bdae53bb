"""The only model call of a compaction: what is asked, what is taken from the answer, how it ends.

The request is the conversation's own, with one instruction at its end, so that the provider's cache
already holds nearly all of it. The answer is a narrative and operations on rows; it is never the
compaction itself. Whatever goes wrong here ends in a SummaryFailed, and the ledger goes on alone.
"""

from __future__ import annotations

import json
import queue
import re
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeGuard, cast

import msgspec
from msgspec import Struct

from clew.compaction.draft import Words
from clew.compaction.ledger import Add, Close, Epoch, Operation, Supersede
from clew.domain.turns import CallResult, Usage
from clew.errors import ClewError, InputError
from clew.store.calls import check_result

POLL = 0.05
"""Seconds between two looks at whether somebody stopped the attempt here."""
LONGEST_ANSWER = 200_000
"""Characters of an answer that are read."""
LONGEST = 20_000
"""Characters of a narrative; a longer answer is no summary."""
OPERATIONS = 200
"""Operations that are taken from one answer."""


class SummaryRequest(Struct, frozen=True, kw_only=True):
    """What a summariser is given."""

    messages: list[dict[str, Any]]
    """Chat Completions messages: those of the conversation's own request, then the instruction."""
    tools: tuple[dict[str, Any], ...] | None
    """The schemas that the conversation's requests carry: a provider's cache begins with them. No
    tool may be called."""
    max_tokens: int
    """What the answer may take."""
    patience: float
    """Seconds until nobody waits any more; pass it on as the time-out of the request."""
    cancelled: Callable[[], bool]
    """Whether somebody stopped the compaction; worth asking between two pieces of a stream."""


class SummaryReply(Struct, frozen=True, kw_only=True):
    """What a model answered."""

    text: str
    finish: str = "stop"
    """Why it stopped: "stop", or as the provider says it ("length", "content_filter", ...)."""
    usage: Usage = Usage()
    cost: float | None = None


class Summarizer(Protocol):
    """A model that writes summaries, as the host can reach it."""

    @property
    def model(self) -> str: ...

    def __call__(self, request: SummaryRequest) -> SummaryReply | str: ...


class SummaryFailed(ClewError):
    """No summary: why, in one line. Nothing was written."""


class SummaryStalled(SummaryFailed):
    """The model did not answer while anybody waited."""


class SummaryStopped(ClewError):
    """Somebody stopped the compaction while the summary was being written."""


def instruction(epoch: Epoch, max_tokens: int) -> str:
    """What the model is asked, with the rows that the parser found."""
    return f"""\
The conversation above grows too long and its older part, messages {epoch.first} to {epoch.last}, \
will leave your context. Do not answer it and do not call tools. Write what helps you to go on \
later without it.

These rows will stay, word for word, beside what you write. [@n] is message n:

{epoch.text}

Answer with one JSON object and nothing else:
{{"narrative": "what happened and why, in past tense, at most {max_tokens * 3} characters; exact \
values only as they stand above; finished work is finished",
 "add": [{{"kind": "rule|ask|decision|fact|done", "text": "a row that is missing, close to the \
original words", "seq": message number}}],
 "supersede": [[seq of a row that no longer holds, seq of the message that replaced it]],
 "close": [seq of an ask that was answered]}}
"""


def words_of(reply: SummaryReply, epoch: Epoch) -> Words:
    """The narrative and the operations of an answer. Raises SummaryFailed."""
    if reply.finish not in ("stop", "end_turn", "completed", ""):
        raise SummaryFailed(f"the answer ended early ({reply.finish[:60]})")
    if not reply.text.strip():
        raise SummaryFailed("the answer is empty")
    if len(reply.text) > LONGEST_ANSWER:
        raise SummaryFailed(f"the answer has {len(reply.text):,} characters")
    answer = _object(reply.text)
    narrative = answer.get("narrative")
    if not isinstance(narrative, str):
        raise SummaryFailed("the answer has no narrative")
    if len(narrative) > LONGEST:
        raise SummaryFailed(f"the narrative has {len(narrative):,} characters")
    operations = tuple(_operations(answer, epoch))
    narrative = _prose(narrative)
    if _REFUSAL.match(narrative):
        raise SummaryFailed("the answer is a refusal")
    if not narrative and not operations:
        raise SummaryFailed("the answer says nothing")
    return Words(narrative, operations[:OPERATIONS])


_REFUSAL = re.compile(
    r"(?:i'?m |i am )?(?:sorry|unable|i (?:can ?not|can'?t|won'?t|am not able))\b", re.IGNORECASE
)


def _prose(text: str) -> str:
    """A narrative without what would look like the ledger's own headings, rows and references."""
    lines = (_MARKS.sub("", line).strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line)


_MARKS = re.compile(r"^[#>\s]+|\[@[\d, @-]*\]")


def _object(text: str) -> dict[str, Any]:
    """The JSON object of an answer, a fence around it or not."""
    first, last = text.find("{"), text.rfind("}")
    try:
        value: object = json.loads(text[first : last + 1]) if 0 <= first < last else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise SummaryFailed("the answer is no JSON object (a refusal, or cut off)")
    return cast(dict[str, Any], value)


_KINDS = ("rule", "ask", "decision", "fact", "done")


def _operations(answer: dict[str, Any], epoch: Epoch) -> list[Operation]:
    """Those that make sense; others are passed over: they only ever add or mark."""
    found: list[Operation] = []
    for value in _list(answer.get("add")):
        match value:
            case {"kind": str(kind), "text": str(text), "seq": seq} if kind in _KINDS:
                if text.strip() and _covered(seq, epoch):
                    found.append(Add(kind, " ".join(text.split())[:500], seq))
            case _:
                pass
    for value in _list(answer.get("supersede")):
        match value:
            case [old, new] if type(old) is int and _covered(new, epoch) and old < new:
                found.append(Supersede(old, new))
            case _:
                pass
    for value in _list(answer.get("close")):
        if type(value) is int:
            found.append(Close(value))
    return found


def _list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


def _covered(seq: object, epoch: Epoch) -> TypeGuard[int]:
    """Whether this is the number of a message that the epoch stands for. True is no number."""
    return type(seq) is int and epoch.first <= seq <= epoch.last


def ask(
    summarizer: Summarizer, request: SummaryRequest, look: Callable[[], None]
) -> SummaryReply:  # fmt: skip
    """Call a summariser and wait for its answer, no longer than its patience.

    It runs on a thread of its own, so that one that hangs holds up nobody: whoever waits goes on,
    and what it answers later finds nobody. `look` is called meanwhile and may raise SummaryStopped.
    """
    answers: queue.SimpleQueue[object] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put(summarizer(request))
        except BaseException as error:  # noqa: BLE001 - whatever a provider's code raises
            answers.put(error)

    threading.Thread(target=run, name="clew-summary", daemon=True).start()
    until = time.monotonic() + request.patience
    while True:
        try:
            answer = answers.get(timeout=POLL)
            break
        except queue.Empty:
            look()
            if time.monotonic() > until:
                raise SummaryStalled(f"no answer within {request.patience:g} s") from None
    if isinstance(answer, BaseException):
        raise SummaryFailed(_in_a_line(answer)) from answer
    if isinstance(answer, str):
        return SummaryReply(text=answer)
    try:
        if not isinstance(answer, SummaryReply):
            raise SummaryFailed(f"the summariser gave a {type(answer).__name__}, no SummaryReply")
        reply = msgspec.convert(msgspec.to_builtins(answer), SummaryReply)
        check_result(CallResult(usage=reply.usage, cost=reply.cost))
    except (msgspec.ValidationError, TypeError, InputError) as error:
        raise SummaryFailed(f"the SummaryReply is not valid: {error}"[:200]) from error
    return reply


def _in_a_line(error: BaseException) -> str:
    """The kind of an error and its status. Its text may hold a key or the conversation, so it is
    not kept."""
    named = type(error).__name__[:60]
    try:
        status = getattr(error, "status_code", None) or getattr(error, "status", None)
    except Exception:  # noqa: BLE001 - a property of theirs
        return named
    return f"{named} {status}" if type(status) is int and 0 <= status < 1_000 else named
