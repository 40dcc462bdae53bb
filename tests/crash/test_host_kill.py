"""A host is killed with -9 at every named point of a turn; another one goes on."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from host_worker import main

import clew
from clew.domain.parts import ToolCall, ToolResult
from clew.host.points import POINTS

WORKER = Path(__file__).with_name("host_worker.py")
TIMES = {
    "received": 1, "begun": 2, "context": 2, "asked": 2, "streaming": 1, "answered": 2,
    "recorded": 1, "waiting": 1, "tool": 3, "ran": 3, "results": 3, "finished": 1,
    "compacting": 1, "compacted": 1, "publishing": 1, "sent": 1, "published": 1,
}  # fmt: skip
"""Each point, and how often it is passed in the turn of the worker: before it waits for a person,
and after."""


def test_these_are_all_points() -> None:
    """One that is added is killed at, too."""
    assert tuple(TIMES) == POINTS


def killed(place: Path, id: str, point: str, number: int) -> bool:
    """Run a host until it kills itself at a point."""
    command = [sys.executable, str(WORKER), str(place), id, point, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("point", "number"), [(at, n) for at, times in TIMES.items() for n in range(1, times + 1)]
)
def test_killed_at_every_point(fast_dir: Path, point: str, number: int) -> None:
    """No message is lost or doubled, an effect is had at most once or reported, and the reply
    arrives: once in the log, at least once, by one key, at its receiver."""
    place = fast_dir / "store.db"
    with clew.open(place) as store:
        conv = store.profile("me").create(source="chat", prompt="Be brief.")
        filler = "What was said before. " * 50
        for n in range(20):
            conv.add({"role": "user", "content": f"{n}: {filler}"})
            conv.add({"role": "assistant", "content": f"{n}: {filler}"})
        id, before = conv.id, conv.info().head
    assert killed(place, id, point, number)
    asyncio.run(main(str(place), id))

    with clew.open(place) as store:
        conv = store.profile("me").open(id)
        said = list(conv.messages(first=before + 1))
        assert [m.seq for m in said] == list(range(before + 1, conv.info().head + 1))
        assert [m.key for m in said if m.role == "user"] == ["u1"]
        finals = [m for m in said if m.role == "assistant" and not calls_of(m)]
        assert [m.text[:12] for m in finals] == ["All is done."]
        assert said[-1].seq == finals[0].seq
        asked = [call for m in said for call in calls_of(m)]
        results = [p for m in said for p in m.parts if isinstance(p, ToolResult)]
        assert sorted(c.id for c in asked) == sorted(r.call_id for r in results)
        had = Counter((fast_dir / "effects").read_text().split())
        for call in asked:
            (result,) = (r for r in results if r.call_id == call.id)
            if call.name == "look":
                assert not result.is_error
            elif result.is_error:
                assert "may have had effects" in str(result.content)
                assert had[call.name] <= 1
            else:
                assert had[call.name] == 1
        assert conv.turns()[0].state == "done"
        assert conv.info().turn is None
        assert not [c for c in conv.calls() if c.state == "planned"]
        assert store.verify() == []
    sent = [json.loads(line) for line in (fast_dir / "sent").read_text().splitlines()]
    assert {route for route, _, _ in sent} == {"me"}
    assert len({key for _, key, _ in sent}) == 1
    assert len(sent) == (2 if point == "sent" else 1)
    assert sent[0][2].startswith("All is done.")


def calls_of(message: clew.Message) -> list[ToolCall]:
    return [part for part in message.parts if isinstance(part, ToolCall)]
