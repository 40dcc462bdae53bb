"""The chat that the tests drive: the real one, with a model and tools that do as they are told.

What the model answers is in the message: its first word names a script. `slow` and `tool slow` wait
for a file, so that a test decides when they go on.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.cli.chat.starting import Started, opened
from clew.cli.commands.chat import run
from clew.cli.failures import INTERRUPTED, report
from clew.cli.settings import Settings
from clew.config.values import Config
from clew.domain.parts import Text, ToolCall
from clew.domain.turns import Usage
from clew.errors import ClewError
from clew.host.host import Host
from clew.providers.api import Body, Model, Price, Reply, StreamEvent, TextDelta, ToolSpec
from clew.providers.errors import BadKey
from clew.providers.registry import Providers
from clew.store.store import Store
from clew.testing.provider import ScriptedProvider
from clew.tools.api import Tool, ToolCallContext, ToolOutput, Verdict
from clew.tools.toolbox import Toolbox

MARKDOWN = """\
# Lists and code

A paragraph with **bold**, `code` and a [link](https://example.org).

1. first
2. second
   - inner

```python
def greet(name):
    return f"hello {name}"
```

| key | value |
|-----|-------|
| a   | 1     |

> a quote
"""
WIDE = "日本語のテキスト 🎉 和 한국어 e\u0301 👩‍👩‍👧 done"
WORDS = ("echo", "markdown", "wide", "evil", "long", "size", "slow", "tool", "ask", "fail")
EVIL = "start \x1b[2J\x1b]0;owned\x07\x9b31m \u202eabc &#x202e; end"


def gate(name: str) -> Path:
    """A file that a test makes when something may go on."""
    return Path(os.environ["CLEW_HOME"]) / f"gate-{name}"


async def passed(name: str) -> None:
    while not gate(name).exists():
        await asyncio.sleep(0.02)


class Told(ScriptedProvider):
    """Answers what the last message of the person says."""

    def __init__(self) -> None:
        price = Price(input=1.0, output=2.0)
        super().__init__(model=Model(name="told", provider="scripted", window=400_000, price=price))

    async def stream(self, body: Body) -> AsyncIterator[StreamEvent]:
        messages = body.payload["messages"]
        said = [text_of(m) for m in messages if m["role"] == "user"]
        word, _, rest = said[-1].partition(" ")
        if messages[-1]["role"] == "tool":
            word, rest = "echo", f"The tool said: {text_of(messages[-1])}"
        if word in ("tool", "ask"):
            yield called("look" if word == "tool" else "write_file", rest)
            return
        if word == "fail":
            raise BadKey("scripted refuses the key; set OTHER_KEY", provider="scripted")
        text = {"markdown": MARKDOWN, "wide": WIDE, "evil": EVIL}.get(word, rest or said[-1])
        if word == "long":
            text = "\n\n".join(f"paragraph {n} of many" for n in range(int(rest)))
        if word == "size":
            text = f"{len(rest.splitlines()):,} lines came, the last is {rest.splitlines()[-1]}"
        for piece in text.split(" ") if word != "slow" else ():
            yield TextDelta(f"{piece} ")
            await asyncio.sleep(0)
        if word == "slow":
            text = ""
            async for text in slowly():
                yield TextDelta(text)
        usage = Usage(input=1000, output=20, cached=400)
        yield Reply(parts=(Text(text),), stop="stop", usage=usage, model="told")


async def slowly() -> AsyncIterator[str]:
    """A paragraph that is finished, and one that waits in its middle."""
    yield "The first paragraph is finished.\n\n"
    yield "The second one waits here, " * 4
    await passed("slow")
    yield "and goes on to its end.\n"


def called(name: str, rest: str) -> Reply:
    call = ToolCall(f"call-{name}-{rest}", name, f'{{"path": "notes/{rest or "a"}.txt"}}')
    return Reply(parts=(call,), stop="tool_calls", usage=Usage(input=900, output=10), model="told")


def text_of(message: Mapping[str, Any]) -> str:
    """The newest text that is a script: messages without an answer, and what the host adds, are
    sent as one."""
    content = message["content"]
    if isinstance(content, str):
        return content
    texts = [part["text"] for part in content if part["type"] == "text"]
    return next((text for text in reversed(texts) if text.split(" ")[0] in WORDS), texts[0])


class FileTool:
    """A tool that answers with a file's name; `bad` is an error, `slow` waits."""

    origin = "built-in"

    def __init__(self, name: str, default: Verdict) -> None:
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        self.spec = ToolSpec(name, f"Use {name}.", schema)
        self.read_only = default == "allow"
        self.default: Verdict = default

    async def call(self, arguments: Mapping[str, Any], where: ToolCallContext) -> ToolOutput:
        path = str(arguments["path"])
        if "slow" in path:
            await passed("tool")
        if "bad" in path:
            return ToolOutput("no such file", is_error=True)
        return ToolOutput(f"line one of {path}\nline two")


class Tools:
    """Where they come from."""

    name = "test"

    async def tools(self) -> Sequence[Tool]:
        return [FileTool("look", "allow"), FileTool("write_file", "ask")]

    async def close(self) -> None:
        pass


async def start(settings: Settings, config: Config) -> Started:
    """As clew.cli.chat.hosting.start, with the model and the tools above."""
    store, parts = await opened(settings)
    profile = store.profile(settings.profile)
    providers = Providers(config, lambda _name, _section: None)
    told = Told()
    providers.add(told)
    host = Host(profile, providers, Toolbox(config.tools, sources=[Tools()]), config)

    async def model() -> Model:
        return told.model

    return Started(
        store=store, blocking=lambda: Store(parts).profile(settings.profile), profile=profile,
        host=host, config=config, model=model,
    )  # fmt: skip


def main(args: list[str]) -> int:
    """As `clew chat`: [--resume ID | --continue] [TEXT...]"""
    if path := os.environ.get("SCRIPTED_PID"):
        Path(path).write_text(str(os.getpid()))
    given: dict[str, Any] = {"resume": None, "last": "--continue" in args, "model": None}
    if "--resume" in args:
        at = args.index("--resume")
        given["resume"] = args[at + 1]
        del args[at : at + 2]
    given["text"] = " ".join(arg for arg in args if arg != "--continue")
    try:
        return run(Settings(), given, "terminal.scripted.start")
    except KeyboardInterrupt:
        return INTERRUPTED
    except ClewError as error:
        return report(error, False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
