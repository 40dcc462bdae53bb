"""A deletion that is killed half way: nobody sees a difference, and the next call ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import clew

DELETE = """
import os, sys, clew
from clew.store import deletion
path, steps = sys.argv[1], int(sys.argv[2])
deletion.STEP = 20
real, left = deletion.step, [steps]

def step(tx, kit, no):
    more = real(tx, kit, no)
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), 9)  # inside the transaction
    return more

deletion.step = step
clew.open(path).profile("p").delete("gone")
"""
MESSAGES = 100


def fill(store: clew.Store) -> dict[str, list[dict[str, object]]]:
    """A conversation with two branches and a branch of one of them; what the branches show."""
    profile = store.profile("p")
    gone = profile.create(id="gone", prompt="p")
    picture = clew.Draft(role=clew.Role.USER, parts=(clew.Image(data=b"png"),))
    gone.append([picture, *(clew.user(f"m{n}", key=f"k{n}") for n in range(MESSAGES))])
    gone.cut(gone.message("k90").uid)
    gone.append([clew.user("tail")])
    high = gone.branch(new=clew.NewConversation(id="high"))
    low = gone.branch(gone.message("k30").uid, new=clew.NewConversation(id="low"))
    inner = high.branch(high.message("k10").uid, new=clew.NewConversation(id="inner"))
    for conv in (high, low, inner):
        conv.append([clew.user(f"own of {conv.id}")])
    return shown(store)


def shown(store: clew.Store) -> dict[str, list[dict[str, object]]]:
    """All that the branches show, hidden messages included."""
    profile = store.profile("p")
    found: dict[str, list[dict[str, object]]] = {}
    for id in ("high", "low", "inner"):
        conv = profile.open(id)
        found[id] = [m.to_dict() for m in conv.messages(hidden=True)]
        found[f"{id} visible"] = [{"seq": m.seq} for m in conv.messages()]
        (part, *_) = conv.message(1).parts
        assert isinstance(part, clew.Image)
        assert conv.blob(part.hash or "") == b"png"
    return found


@pytest.mark.parametrize("steps", [0, 1, 3, 6, 9, 12, 14])
@pytest.mark.parametrize("finish", ["maintain", "delete again", "delete another"])
def test_a_killed_deletion_is_finished_by_the_next_call(
    fast_dir: Path, steps: int, finish: str
) -> None:
    path = fast_dir / "store.db"
    with clew.open(path) as store:
        before = fill(store)
        store.profile("p").create(id="another")
    child = subprocess.run(
        [sys.executable, "-c", DELETE, str(path), str(steps)],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (child.returncode, child.stderr) == (-signal.SIGKILL, "")
    with clew.open(path) as store:
        profile = store.profile("p")
        assert store.verify() == []
        assert shown(store) == before
        with pytest.raises(clew.NotFound):
            profile.open("gone")
        assert "gone" not in {info.id for info in profile.list().items}
        branch = profile.open("high").append([clew.user("between", key="between")])
        before["high"].append(profile.open("high").message("between").to_dict())
        before["high visible"].append({"seq": branch.seqs[0]})
        match finish:
            case "maintain":
                store.maintain()
            case "delete again":
                profile.delete("gone")
            case _:
                profile.delete("another")
        assert shown(store) == before
        assert [profile.open(id).info().base for id in ("high", "low", "inner")] == [0, 0, 12]
        assert store.verify() == []
    connection = apsw.Connection(str(path))
    left = connection.execute("SELECT count(*) FROM conversation WHERE id = 'gone'").fetchall()
    orphans = connection.execute(
        "SELECT count(*) FROM message WHERE conversation_no NOT IN (SELECT no FROM conversation)"
    ).fetchall()
    connection.close()
    assert (left, orphans) == ([(0,)], [(0,)])
