"""Chat Completions answers, whole or in pieces, as parts. Servers differ in much; what each is
known to do stands where it is dealt with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import cast

from clew.domain.parts import Part, Reasoning, Text, ToolCall
from clew.domain.turns import Usage
from clew.providers.api import CallDelta, ReasoningDelta, Reply, Stop, StreamEvent, TextDelta
from clew.providers.openai_fields import Json, count_of, number_of, object_of, objects_of, text_of

REASONING = ("reasoning_content", "reasoning", "reasoning_text")
"""Where servers put the thinking: DeepSeek, Qwen, llama.cpp; vLLM, Ollama, Groq, OpenRouter;
Copilot. Some send it twice: the first that is there counts."""
_STOPS: Mapping[object, Stop] = {
    "stop": "stop", "eos": "stop", "length": "length", "max_tokens": "length",
    "model_length": "length", "tool_calls": "tool_calls", "function_call": "tool_calls",
    "content_filter": "content_filter", "refusal": "refusal",
}  # fmt: skip
_ARGUMENTS = {"custom": "input"}


class Answer:
    """What came so far. `add` a chunk, then ask for the `reply`."""

    def __init__(self, model: str) -> None:
        self._asked = model
        self._id: str | None = None
        self._model: str | None = None
        self._text = self._thought = self._refusal = ""
        self._calls = Calls()
        self._usage: Json = {}
        self._timings: Json = {}
        self.finish: object = None
        """As the server said it."""
        self.begun = False
        """Whether a choice came."""

    def add(self, chunk: Json) -> Iterator[StreamEvent]:
        """Take a chunk of a stream, or a whole answer."""
        self._id = self._id or text_of(chunk.get("id")) or None
        self._model = self._model or text_of(chunk.get("model")) or None
        groq = object_of(chunk.get("x_groq"))  # where Groq once put the usage of a stream
        self._usage = object_of(chunk.get("usage")) or object_of(groq.get("usage")) or self._usage
        self._timings = object_of(chunk.get("timings")) or self._timings
        for choice in objects_of(chunk.get("choices")):
            if choice.get("index") in (0, None):
                self.begun = True
                self.finish = choice.get("finish_reason") or self.finish
                yield from self._delta(object_of(choice.get("delta") or choice.get("message")))

    def _delta(self, delta: Json) -> Iterator[StreamEvent]:
        thought = next((t for name in REASONING if (t := text_of(delta.get(name)))), "")
        text = ""
        if isinstance(content := delta.get("content"), list):  # Mistral, of models that think
            for piece in objects_of(cast(object, content)):
                thought += "".join(
                    text_of(p.get("text")) for p in objects_of(piece.get("thinking"))
                )
                text += text_of(piece.get("text"))
        else:
            text = text_of(content)
        refusal = text_of(delta.get("refusal"))
        self._thought, self._text = self._thought + thought, self._text + text
        self._refusal += refusal
        if thought:
            yield ReasoningDelta(thought)
        if text or refusal:
            yield TextDelta(text + refusal)
        for call in objects_of(delta.get("tool_calls")):
            yield self._calls.add(call, self._id)

    def reply(self) -> Reply:
        """The whole answer."""
        said: list[Part] = []
        if self._thought:
            said.append(Reasoning(self._thought, model=self._asked))
        said += [Text(text) for text in (self._text, self._refusal) if text]
        calls = self._calls.parts()
        return Reply(
            parts=(*said, *calls), stop=self._stop(bool(calls)),
            usage=usage_of(self._usage, self._timings), model=self._model, id=self._id,
            cost=number_of(self._usage.get("cost")),
        )  # fmt: skip

    def _stop(self, has_calls: bool) -> Stop:
        if self._refusal:
            return "refusal"
        stop = "stop" if self.finish is None else _STOPS.get(self.finish, "other")
        return "tool_calls" if has_calls and stop in ("stop", "other") else stop


class Calls:
    """Tool calls as their pieces come."""

    def __init__(self) -> None:
        self._calls: list[Json] = []
        self._at: dict[object, int] = {}
        """Place of the call whose pieces have this index."""

    def add(self, piece: Json, answer: str | None) -> CallDelta:
        """Take a piece. An id that another call has, or none, is replaced by one of our own."""
        kind = "custom" if "custom" in piece else "function"
        body = object_of(piece.get(kind))
        id, name = text_of(piece.get("id")), text_of(body.get("name"))
        at = self._place(piece.get("index"), id, name)
        is_new = at == len(self._calls)
        if is_new:
            taken = {call["id"] for call in self._calls}
            given = id if id and id not in taken else f"call_{at}_{answer or 'answer'}"
            self._calls.append({"sent": id, "id": given, "name": "", "arguments": "",
                                "kind": kind, "extra": {}})  # fmt: skip
        call, word = self._calls[at], _ARGUMENTS.get(kind, "arguments")
        call["name"] = call["name"] or name
        arguments = body.get(word)
        if arguments is not None and not isinstance(arguments, str):  # Ollama once sent an object
            arguments = json.dumps(arguments, ensure_ascii=False)
        call["arguments"] += arguments or ""
        self._keep(call, piece, body, kind, word)
        return CallDelta(
            at, call["id"] if is_new else None, call["name"] if is_new else None, arguments or ""
        )

    def _place(self, index: object, id: str, name: str) -> int:
        """The call that a piece belongs to. Gemini gives all calls of an answer the index 0, each
        with an id of its own; others give no index, and the id in the first piece alone."""
        at = self._at.get(index, len(self._calls) - 1 if index is None and not name else -1)
        known = 0 <= at < len(self._calls)
        begins = bool(name) and bool(id) and known and id != self._calls[at]["sent"]
        whole = bool(name) and index is None
        if not known or begins or whole:
            at = self._at[index] = len(self._calls)
        return at

    @staticmethod
    def _keep(call: Json, piece: Json, body: Json, kind: str, word: str) -> None:
        """What else the server sent and may want back, such as Gemini's thought signatures."""
        extra: Json = call["extra"]
        extra |= {
            name: value for name, value in piece.items()
            if name not in ("id", "type", "index", kind) and value is not None
        }  # fmt: skip
        inner = {n: v for n, v in body.items() if n not in ("name", word) and v is not None}
        if inner:
            extra[kind] = {**extra.get(kind, {}), **inner}

    def parts(self) -> tuple[ToolCall, ...]:
        """The calls, in their order."""
        return tuple(
            ToolCall(
                call["id"], call["name"], call["arguments"], call["kind"], call["extra"] or None
            )
            for call in self._calls
        )


def usage_of(usage: Json, timings: Json | None = None) -> Usage:
    """Tokens as the server counts them. DeepSeek and Moonshot name the cached ones in fields of
    their own, llama.cpp among its timings; xAI and Gemini leave the thinking out of the output, but
    not out of the sum."""
    sent, got = count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))
    told = object_of(usage.get("prompt_tokens_details"))
    thought = object_of(usage.get("completion_tokens_details"))
    cached = (
        told.get("cached_tokens")
        or usage.get("prompt_cache_hit_tokens")
        or usage.get("cached_tokens")
        or (timings or {}).get("cache_n")
    )
    return Usage(
        input=sent, output=max(got, count_of(usage.get("total_tokens")) - sent),
        cached=min(count_of(cached), sent), reasoning=count_of(thought.get("reasoning_tokens")),
    )  # fmt: skip
