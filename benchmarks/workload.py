"""The text the benchmarks write: deterministic, stdlib only (peers import this too).

Messages are plain dicts in the chat format of OpenAI, which every adapter turns into what its
store takes, outside the timed sections. A turn is user, assistant with a tool call, tool result,
assistant; its text mixes words, identifiers, code and some Chinese, as agents' transcripts do.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ChatMessage = dict[str, Any]

COMMON_WORD = "function"
RARE_WORD = "quokkazephyr"
TWO_CJK = "归档"

_VOCABULARY = """
the of to and a in is it that for on with as this be are not or have from can will if we but when
which file function return value test error session store message commit index query cache model
context token window prompt tool call result output input path line code class method async await
import module package version update delete insert select table row column key lock thread process
worker queue retry timeout handler request response server client stream parse config option
default branch merge build deploy script check fix bug issue change add remove rename move read
write open close start stop run list search sort filter map reduce append extend split join format
print log trace debug warn raise except finally yield loop while break continue pass user agent
memory summary turn review patch diff
"""
_WORDS = _VOCABULARY.split()
_WEIGHTS = [1 / (rank + 2) for rank in range(len(_WORDS))]
_CODE = (
    "def {a}_{b}(self, {c}: int) -> str:\n    return self.{a}[{c}].{b}()\n",
    'if {a} is None and {b} > 0:\n    raise ValueError(f"bad {c}")\n',
    "SELECT {a}, {b} FROM {c} WHERE id = ? ORDER BY at DESC LIMIT 50;\n",
    "$ grep -rn '{a}' src/{b}/{c}.py | head -{n}\n",
    "src/{a}/{b}.py:{n}: {c} = {a}.{b}({n})\n",
    '  File "/srv/app/{a}/{b}.py", line {n}, in {c}\n',
    "ERROR {a}@{n}.{n} {b}: `{c} --flag` exited with {n}\n",
)
_CJK = (
    "请检查数据库连接并重新运行测试用例然后把结果写入日志文件"
    "用户希望保留历史记录上下文窗口已满需要总结对话内容"
)
_TOOLS = ("terminal", "read_file", "patch")
_REALISTIC = {600: 70, 2_000: 25, 10_000: 5}
"""Bytes, and the share of messages of that size in percent."""
_ENVELOPE = 260
"""Bytes of an assistant message with a tool call that are not its text or arguments."""


class Writer:
    """Makes text from a random source of its own."""

    def __init__(self, seed: int | str) -> None:
        self.random = random.Random(seed)

    def text(self, length: int) -> str:
        """Exactly `length` characters of prose and code."""
        pieces: list[str] = []
        have = 0
        while have < length:
            piece = self._prose() if self.random.random() < 0.62 else self._code()
            pieces.append(piece)
            have += len(piece)
        return "".join(pieces)[:length]

    def cjk(self, length: int) -> str:
        """Characters without spaces, as Chinese is written."""
        return "".join(self.random.choices(_CJK, k=length))

    def _prose(self) -> str:
        words = " ".join(self.random.choices(_WORDS, _WEIGHTS, k=12))
        if self.random.random() < 0.7:
            return words + ". "
        return f"{words} {self.random.randrange(16**6):06x} "

    def _code(self) -> str:
        pick = self.random.choice
        name = f"{pick(_WORDS)}{self.random.randrange(900)}"
        number = self.random.randrange(2000)
        return pick(_CODE).format(a=name, b=pick(_WORDS), c=pick(_WORDS), n=number)


class Slicer(Writer):
    """A writer for stores of a million messages: cuts its text out of four megabytes made once."""

    _ring = ""

    def text(self, length: int) -> str:
        ring = Slicer._ring
        if not ring:
            ring = Slicer._ring = Writer("ring").text(4_000_000)
        start = ring.index(" ", self.random.randrange(len(ring) - length - 1_000)) + 1
        return ring[start : start + length]


@dataclass(frozen=True)
class Chat:
    """One conversation to write."""

    name: str
    messages: list[ChatMessage]


def payload(message: ChatMessage) -> int:
    """What a message weighs: the bytes of its JSON in UTF-8."""
    return len(json.dumps(message, ensure_ascii=False).encode())


def w1(conversations: int = 200, messages: int = 100, first: int = 0) -> Iterator[Chat]:
    """Workload W1: messages of about 600 bytes in turns of four."""
    for number in range(first, first + conversations):
        writer = Writer(f"w1-{number}")
        yield Chat(f"w1-{number:06d}", _turns(writer, messages))


def realistic(conversations: int = 100, messages: int = 100) -> Iterator[Chat]:
    """The same turns with realistic sizes: 70 % 600 B, 25 % 2 KB, 5 % 10 KB."""
    sizes, weights = list(_REALISTIC), list(_REALISTIC.values())
    for number in range(conversations):
        writer = Writer(f"realistic-{number}")
        chosen = writer.random.choices(sizes, weights, k=messages)
        made = [_sized(writer, position, size) for position, size in enumerate(chosen)]
        yield Chat(f"realistic-{number:06d}", made)


BIG = 12
BIG_MESSAGES = 1_000
_SMALL_MESSAGES = 38


def grown(size: int, big: int = BIG) -> Iterator[Chat]:
    """A store of `size` messages: `big` conversations of 1,000, the rest of 38 each.

    One message in 40,000 holds the rare word, one in 1,600 the two Chinese characters.
    """
    seen = 0
    number = 0
    while seen < size:
        wanted = BIG_MESSAGES if number < big else _SMALL_MESSAGES
        writer = Slicer(f"grown-{number}")
        messages = _turns(writer, min(wanted, size - seen))
        _plant(messages, seen, 40_000, RARE_WORD)
        _plant(messages, seen, 1_600, f"请把它{TWO_CJK}到文件")
        yield Chat(f"{'big' if number < big else 'small'}-{number:06d}", messages)
        seen += len(messages)
        number += 1


def _plant(messages: list[ChatMessage], seen: int, every: int, word: str) -> None:
    for position in range(-seen % every, len(messages), every):
        messages[position]["content"] += f" {word} "


def _turns(writer: Writer, count: int) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    while len(messages) < count:
        messages += _turn(writer)
    return messages[:count]


def _turn(writer: Writer) -> tuple[ChatMessage, ...]:
    """Four messages of about 600 bytes each on average."""
    size = writer.random.randrange
    question = writer.text(size(150, 700))
    if writer.random.random() < 0.03:
        question += " " + writer.cjk(60)
    call = _call_id(writer)
    return (
        {"role": "user", "content": question},
        _calling(writer, call, size(40, 300), size(60, 320)),
        _result(call, writer.text(size(300, 1_500))),
        {"role": "assistant", "content": writer.text(size(200, 900))},
    )


def _sized(writer: Writer, position: int, size: int) -> ChatMessage:
    """The message at `position` of a run of turns, weighing about `size` bytes."""
    call = f"call_{position // 4:012x}"
    match position % 4:
        case 0:
            return {"role": "user", "content": writer.text(size - 40)}
        case 1:
            spoken = min(300, size // 3)
            return _calling(writer, call, spoken, size - spoken - _ENVELOPE)
        case 2:
            return _result(call, writer.text(size - 110))
        case _:
            return {"role": "assistant", "content": writer.text(size - 50)}


def _call_id(writer: Writer) -> str:
    return f"call_{writer.random.randrange(16**12):012x}"


def _calling(writer: Writer, call: str, spoken: int, asked: int) -> ChatMessage:
    arguments = json.dumps({"command": writer.text(asked), "timeout": 60})
    function = {"name": writer.random.choice(_TOOLS), "arguments": arguments}
    calls = [{"id": call, "type": "function", "function": function}]
    return {"role": "assistant", "content": writer.text(spoken), "tool_calls": calls}


def _result(call: str, text: str) -> ChatMessage:
    return {"role": "tool", "tool_call_id": call, "name": "terminal", "content": text}
