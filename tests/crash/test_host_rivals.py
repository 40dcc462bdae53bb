"""Two hosts, in processes of their own, on one conversation; their rights are taken away at times.

Who runs is decided inside each write (I-03, I-04): the log has no gap, and each message is answered
once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from host_rival import END, NAME

import clew
import servers

RIVAL = Path(__file__).with_name("host_rival.py")


@pytest.mark.parametrize("losses", [0, 7], ids=["kept", "lost"])
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_two_hosts_answer_every_message_once(fast_dir: Path, engine: str, losses: int) -> None:
    place: Any = fast_dir / "store.db" if engine == "sqlite" else servers.empty_database()
    with clew.open(place) as store:
        id = store.profile("me").create(source="chat", prompt="Be brief.").id
    command = [sys.executable, str(RIVAL), str(place), id]
    hosts = [
        subprocess.Popen([*command, name, "100", str(losses)], stderr=subprocess.PIPE, text=True)
        for name in "ab"
    ]
    for host in hosts:
        _, errors = host.communicate(timeout=300)
        assert host.returncode == 0, errors
    last = subprocess.run(
        [*command, "c", "0", "0"], capture_output=True, text=True, timeout=120, check=False
    )
    assert last.returncode == 0, last.stderr

    with clew.open(place) as store:
        conv = store.profile("me").open(id)
        messages = list(conv.messages())
        assert [m.seq for m in messages] == list(range(1, conv.info().head + 1))
        keys = [m.key for m in messages if m.role == "user"]
        assert sorted(map(str, keys)) == sorted(f"{name}{n}" for name in "ab" for n in range(100))
        for name in "ab":  # each side in its order
            mine = [int(str(key)[1:]) for key in keys if str(key).startswith(name)]
            assert mine == sorted(mine)
        answers = [
            m for m in messages
            if m.role == "assistant" and m.text.endswith(END) and not (m.meta or {}).get("partial")
        ]  # fmt: skip
        named = Counter(name for m in answers for name in NAME.findall(m.text))
        assert set(named) == set(map(str, keys))
        assert set(named.values()) == {1}
        assert store.verify() == []
        assert conv.info().turn is None
        assert conv.info().waiting == 0
        states = Counter(turn.state for turn in conv.turns(limit=1000))
        assert (states["interrupted"] > 0) == bool(losses)
