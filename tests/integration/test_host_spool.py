"""A host whose store goes away in the middle of a turn, or before one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hosting import hosted, kinds, told

import clew
import clew.aio
from clew.host.events import Event, Notice, TurnEnded
from clew.testing.provider import ScriptedProvider


def test_an_answer_that_the_store_cannot_take_is_kept_and_its_turn_stops(tmp_path: Path) -> None:
    """S39.4 Diverted, with no retry; the person is told, and the next turn goes on from there."""

    async def main() -> None:
        place, events = tmp_path / "a.db", list[Event]()
        away = False

        def watch(point: str) -> None:
            """After the model has answered, before that is stored, the file is not the one."""
            nonlocal away
            if point == "answered" and not away:
                away = True
                place.rename(tmp_path / "elsewhere.db")
                place.write_bytes(b"")

        async with hosted(place, ScriptedProvider("It is on its way."), watch=watch) as (host, _):
            conv = await host.new("chat")
            report = await host.say(conv, [clew.user("order?")], emit=events.append)
            assert report.state == "interrupted"
            assert "Notice" in kinds(events)
            assert [e.kind for e in events if isinstance(e, Notice)] == ["store"]
            assert [e.state for e in events if isinstance(e, TurnEnded)] == ["interrupted"]
            with pytest.raises(clew.Spooled):
                await host.say(conv, [clew.user("hello?", key="h")], emit=events.append)
            assert "not answered yet" in [e.text for e in events if isinstance(e, Notice)][-1]
            id = conv.id
        place.unlink()
        (tmp_path / "elsewhere.db").rename(place)
        async with hosted(place, ScriptedProvider("Still on its way.")) as (host, profile):
            back = await profile.open(id)
            await back.set_title("t")
            assert await told(back) == ["user: order?", "assistant: It is on its way."]
            assert (await back.turns(1))[0].state == "interrupted"
            assert await host.recover() == 1
            assert await told(back) == [
                "user: order?", "assistant: It is on its way.", "user: hello?",
                "assistant: Still on its way.",
            ]  # fmt: skip

    asyncio.run(main())
