"""Works on a store and records what reaches the disk.

    python power_cut.py STORE RESULT honest|lying

A process of its own, because the recording file system becomes the default one of SQLite.
"""

from __future__ import annotations

import pickle
import random
import sys
from pathlib import Path

from recording_vfs import RecordingVFS

import clew

STEPS = 120


def work(path: Path, vfs: RecordingVFS) -> None:
    """Append, branch, cut, compact, run turns, keep images; acknowledge each key once it is in."""
    rng = random.Random(7)
    with clew.open(path) as store:
        conv = store.profile("p").open("c")
        for n in range(STEPS):
            key = f"k{n}"
            text = key * rng.choice((1, 100, 2000))
            match rng.randrange(8):
                case 0:
                    picture = clew.Image(data=rng.randbytes(60_000))
                    conv.append([clew.Draft(role=clew.Role.USER, parts=(picture,), key=key)])
                case 1:
                    turn = conv.begin_turn([clew.user(text, key=key)])
                    assert isinstance(turn, clew.TurnHandle)
                    turn.finish([clew.assistant("done", key=f"{key} done")])
                    vfs.acknowledge(f"{key} done")
                case 2:
                    conv.edit(
                        conv.log(limit=1, order="newest").items[0].uid, clew.user(text, key=key)
                    )
                case 3:
                    _compact(conv)
                    conv.append([clew.user(text, key=key)])
                case 4:
                    conv.branch().append([clew.user("own")])
                    conv.append([clew.user(text, key=key)])
                case _:
                    conv.append([clew.user(text, key=key)])
            vfs.acknowledge(key)


def _compact(conv: clew.Conversation) -> None:
    head = conv.info().head
    body = (clew.Inline(clew.Role.USER, (clew.Text("summary"),)),)
    plan = clew.Proposal(covers_to=head, body=body, tokens_before=2, tokens_after=1)
    conv.commit_attempt(conv.open_attempt().number, plan)


def main() -> None:
    path, result, how = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    with clew.open(path) as store:
        store.profile("p").create(id="c").append([clew.user("first", key="first")])
    start = {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}
    skipped = iter(range(1 << 30))
    honest = how == "honest"
    vfs = RecordingVFS(
        "recording",
        lies=lambda name: not honest and name.endswith("-wal") and next(skipped) % 5 == 0,
    )
    work(path, vfs)
    result.write_bytes(pickle.dumps((start, vfs.events)))


if __name__ == "__main__":
    main()
