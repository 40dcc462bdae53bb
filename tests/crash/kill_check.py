"""What a store holds after its writers were killed, against what they were told.

    python kill_check.py STORE TOLD

TOLD is the list that kill_server.py printed. Prints one JSON object.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import clew

Told = list[dict[str, int | None]]


def check(path: Path, told: Told) -> dict[str, list[Any]]:
    """Messages that are lost, at another place, or doubled, and what else does not hold."""
    found: dict[str, list[Any]] = {"lost": [], "doubled": [], "problems": []}
    with clew.open(path) as store:
        profile = store.profile("crash")
        room = profile.open("room")
        room.append([clew.user("the last one")])  # takes in what still waits
        info = room.info()
        if (info.waiting, info.turn) != (0, None):
            found["problems"].append(f"{info.waiting} wait, turn {info.turn} is open")
        seqs: dict[str, dict[str, int]] = {}
        for each in _all(profile):
            messages = list(profile.open(each.id).messages(hidden=True))
            seqs[each.id] = {m.key: m.seq for m in messages if m.key}
            times = Counter(m.key for m in messages if m.key)
            found["doubled"] += [key for key, n in times.items() if n > 1]
            if [m.seq for m in messages] != list(range(1, len(messages) + 1)):
                found["problems"].append(f"{each.id} has holes")
        for name, seq in (item for keys in told for item in keys.items()):
            conversation, key = name.split(" ")
            if key not in seqs[conversation] or seq not in (None, seqs[conversation][key]):
                found["lost"].append(name)
        found["problems"] += [*_turns(room), *map(str, store.verify())]
    return found


def _all(profile: clew.Profile) -> Iterator[clew.ConversationSummary]:
    cursor = None
    while True:
        page = profile.list(limit=500, cursor=cursor)
        yield from page.items
        cursor = page.next
        if cursor is None:
            return


def _turns(room: clew.Conversation) -> Iterator[str]:
    """A finished turn has its messages in order; nobody else's came in between."""
    turns = {turn.number: turn.state for turn in room.turns(limit=10_000)}
    mine: dict[int | None, list[clew.Message]] = {}
    for message in room.messages(hidden=True):
        mine.setdefault(message.turn, []).append(message)
    for number, state in turns.items():
        seqs = [m.seq for m in mine[number]]
        keys = [m.key or "" for m in mine[number] if m.role is clew.Role.ASSISTANT]
        if seqs != list(range(seqs[0], seqs[0] + len(seqs))):
            yield f"turn {number} has seqs {seqs}"
        if state not in ("done", "interrupted"):
            yield f"turn {number} is {state}"
        if state == "done" and [key.rpartition("-")[2] for key in keys] != ["step", "last"]:
            yield f"turn {number} has {keys}"
    if "done" not in turns.values():
        yield "no turn was ever done"


def main() -> None:
    told: Told = json.loads(Path(sys.argv[2]).read_text())
    json.dump(check(Path(sys.argv[1]), told), sys.stdout)


if __name__ == "__main__":
    main()
