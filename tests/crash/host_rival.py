"""One of several hosts on one conversation: says its messages one by one, each by its key.

    python host_rival.py STORE CONVERSATION NAME COUNT LOSSES

LOSSES: every so often a right is taken away by force, whoever has it; 0 never.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

from hosting import QUIET, hosted

import clew
from clew.providers.api import Body
from clew.testing.provider import ScriptedProvider

END = "(end)"
NAME = re.compile(r"\b[a-z]\d+\b")


def answer(body: Body) -> str:
    """Names every message that no whole answer has named yet."""
    open_: list[str] = []
    messages: list[dict[str, Any]] = body.payload["messages"]
    for message in messages:
        said = NAME.findall(str(message["content"]))
        if message["role"] == "user":
            open_ += said
        elif message["role"] == "assistant" and str(message["content"]).endswith(END):
            open_ = [name for name in open_ if name not in said]
    return f"re {' '.join(dict.fromkeys(open_))} {END}"


async def main(place: str, id: str, name: str, count: str, losses: str) -> None:
    async with hosted(place, ScriptedProvider(answer), config=QUIET) as (host, profile):
        conv = await profile.open(id)
        for n in range(int(count)):
            work = asyncio.ensure_future(
                host.say(conv, [clew.user(f"{name}{n}", key=f"{name}{n}")])
            )
            if int(losses) and n % int(losses) == 0:
                await asyncio.sleep(0.003)
                await conv.interrupt_turn("its right was taken away")
            await work
        while await host.go_on(conv) is not None:
            pass


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
