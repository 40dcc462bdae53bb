"""Incremental backups: points that rebuild exactly, share what they have in common, and tell
damage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew.clock import SystemClock
from clew.errors import Corrupt, InputError, StoreUnusable
from clew.store import backup_chain, backup_packs
from clew.store.backup import backup, restore
from clew.store.backup_chain import (
    backup_point,
    extract,
    find,
    parse_place,
    points,
    prune_points,
    rehearse,
)
from clew.store.copying import remove


@pytest.fixture
def path(fast_dir: Path) -> Path:
    path = fast_dir / "a.db"
    with clew.open(path) as store:
        conv = store.profile("me").conversation("k")
        conv.append([clew.user(f"message {n} " + os.urandom(300).hex()) for n in range(400)])
    return path


def add(path: Path, count: int) -> None:
    with clew.open(path) as store:
        conv = store.profile("me").conversation("k")
        for n in range(count):
            conv.add(clew.user(f"later {n} " + os.urandom(300).hex()))


def total(folder: Path) -> int:
    return sum(name.stat().st_size for name in folder.rglob("*") if name.is_file())


def test_each_point_rebuilds_as_it_was(path: Path, fast_dir: Path) -> None:
    """As a whole backup of the same moment holds it."""
    folder, made = fast_dir / "points", list[tuple[str, int]]()
    for number in range(4):
        point = backup_point(path, folder)
        made.append((point.id, 400 + 10 * number))
        add(path, 10)
    assert [point.id for point in points(folder)] == [id for id, _ in made]
    for id, messages in made:
        dest = fast_dir / f"{id}.db"
        assert extract(folder, find(folder, id), dest).messages == messages
        with clew.open(dest) as store:
            assert store.verify() == []
            assert store.profile("me").conversation("k").info().message_count == messages
        backup_chain.test_point(folder, find(folder, id))


def test_what_did_not_change_is_not_stored_again(path: Path, fast_dir: Path) -> None:
    """The next point of a store that did not change is a kilobyte; one of ten more messages is as
    large as what they changed."""
    folder = fast_dir / "points"
    first = backup_point(path, folder)
    before = total(folder)
    assert first.added > 100_000
    assert backup_point(path, folder).added == 0
    assert total(folder) - before < 1024
    add(path, 10)
    assert 0 < backup_point(path, folder).added < first.added / 4


def test_a_point_is_made_while_others_write(path: Path, fast_dir: Path) -> None:
    folder = fast_dir / "points"
    with clew.open(path) as store:
        conv = store.profile("me").conversation("k")
        point = backup_point(
            path, folder, progress=lambda done, of: conv.add(clew.user(f"{done}")) and None
        )
        assert conv.info().message_count > 400
    rehearse(folder, point)
    assert point.messages == 400


def test_old_points_go_and_what_they_alone_needed(path: Path, fast_dir: Path) -> None:
    folder = fast_dir / "points"
    for _ in range(5):
        backup_point(path, folder)
        with clew.open(path) as store:
            profile = store.profile("me")
            profile.delete(profile.conversation("k").id)
            profile.conversation("k").append([clew.user(os.urandom(400).hex()) for _ in range(300)])
    before, whole = total(folder), points(folder)
    gone = prune_points(folder, 2)
    assert gone == whole[:-2]
    assert points(folder) == whole[-2:]
    assert total(folder) < before * 0.75
    for point in points(folder):
        rehearse(folder, point)
    last = backup_point(path, folder, keep=1)
    assert points(folder) == [last]
    rehearse(folder, last)


def test_a_damaged_pack_is_named(path: Path, fast_dir: Path) -> None:
    """By reading it, and a backup that needs it is not made as if it were whole."""
    folder = fast_dir / "points"
    point = backup_point(path, folder)
    (pack,) = (folder / "packs").glob("*.pack")
    content = pack.read_bytes()
    for at in (len(content) // 2, len(content) - 5, 3):
        pack.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(Corrupt, match=pack.name):
            rehearse(folder, point)
    pack.write_bytes(content[: len(content) // 3])
    with pytest.raises(Corrupt, match=pack.name):
        extract(folder, point, fast_dir / "out.db")
    assert not (fast_dir / "out.db").exists()
    pack.unlink()
    with pytest.raises(Corrupt, match="missing"):
        rehearse(folder, point)
    pack.write_bytes(content)
    rehearse(folder, point)
    file = folder / f"{point.id}.point"
    file.write_bytes(file.read_bytes().replace(b'"messages":400', b'"messages":401'))
    with pytest.raises(Corrupt, match=file.name):
        points(folder)


def test_a_damaged_pack_stops_the_next_point(path: Path, fast_dir: Path) -> None:
    """It is rebuilt from the disk before it counts: what is shared is read, too."""
    folder = fast_dir / "points"
    first = backup_point(path, folder)
    (pack,) = (folder / "packs").glob("*.pack")
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 1
    pack.write_bytes(content)
    with pytest.raises(Corrupt, match=pack.name):
        backup_point(path, folder)
    assert points(folder) == [first]


KILLED = (
    "import os, signal, sys\n"
    "from clew.store import backup_packs, backup_points\n"
    "from clew.store.backup_chain import backup_point\n"
    "left = int(sys.argv[3])\n"
    "def write(path, content, real=backup_packs.write):\n"
    "    global left\n"
    "    left -= 1\n"
    "    if left < 0:\n"
    "        (path.parent / f'.{path.name}.partial-dead').write_bytes(content[:100])\n"
    "        os.kill(os.getpid(), signal.SIGKILL)\n"
    "    real(path, content)\n"
    "backup_packs.write = backup_points.write = write\n"
    "backup_point(sys.argv[1], sys.argv[2], keep=1)\n"
)


@pytest.mark.parametrize("after", [0, 1])
def test_a_killed_backup_leaves_nothing_half_written(
    path: Path, fast_dir: Path, after: int
) -> None:
    """What was there can be restored, and the next run removes what was left."""
    folder = fast_dir / "points"
    first = backup_point(path, folder)
    add(path, 20)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(folder), str(after)], timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert points(folder) == [first]
    rehearse(folder, first)
    last = backup_point(path, folder, keep=1)
    assert points(folder) == [last]
    rehearse(folder, last)
    left = {name.name for name in folder.rglob("*") if name.is_file()}
    assert not [name for name in left if "partial" in name or "copy" in name]


def test_nobody_else_reads_a_backup(path: Path, fast_dir: Path) -> None:
    folder = fast_dir / "points"
    backup_point(path, folder)
    for name in (folder, *folder.rglob("*")):
        assert name.stat().st_mode & 0o077 == 0, name


def test_a_folder_of_something_else_is_left_alone(path: Path, fast_dir: Path) -> None:
    (fast_dir / "photos").mkdir()
    (fast_dir / "photos" / "one.jpg").touch()
    with pytest.raises(InputError, match="other files"):
        backup_point(path, fast_dir / "photos")
    with pytest.raises(InputError, match="no incremental"):
        points(fast_dir / "photos")
    with pytest.raises(InputError, match="no incremental"):
        prune_points(fast_dir / "photos", 1)
    assert [name.name for name in (fast_dir / "photos").iterdir()] == ["one.jpg"]
    with pytest.raises(clew.StoreError, match="no store"):
        backup_point(fast_dir / "none.db", fast_dir / "new")
    assert not (fast_dir / "new").exists()
    (fast_dir / "file").touch()
    with pytest.raises(StoreUnusable):
        backup_point(path, fast_dir / "file")


def test_a_place_names_a_folder_or_a_point_of_it(path: Path, fast_dir: Path) -> None:
    folder = fast_dir / "points@home"
    one = backup_point(path, folder)
    two = backup_point(path, folder)
    assert parse_place(folder) == (folder, None)
    assert parse_place(f"{folder}@{one.id}") == (folder, one.id)
    assert parse_place(fast_dir) is None
    assert find(folder, None) == two
    assert find(folder, two.id) == two
    assert find(folder, one.id) == one
    with pytest.raises(InputError, match="no point"):
        find(folder, "1999")
    with pytest.raises(InputError, match="several"):
        find(folder, "2")


def test_a_clock_that_stands_still_makes_two_points(path: Path, fast_dir: Path) -> None:
    class Still:
        def now(self) -> int:
            return 1_780_000_000_000_000

    ids = [backup_point(path, fast_dir / "points", clock=Still()).id for _ in range(3)]
    assert len(set(ids)) == 3
    assert SystemClock().now() > Still().now()


def test_a_full_disk_leaves_what_was_there(
    path: Path, fast_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fast_dir / "points"
    first = backup_point(path, folder)
    add(path, 5)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(backup_packs.os, "fsync", full)
    with pytest.raises(clew.StoreFull):
        backup_point(path, folder)
    monkeypatch.undo()
    assert points(folder) == [first]
    rehearse(folder, first)


def test_a_store_with_a_dictionary_is_restored(path: Path, fast_dir: Path) -> None:
    """Verifying a copy needs the copy's own dictionaries."""
    with clew.open(path) as store:
        conv = store.profile("me").conversation("k2")
        for n in range(30):
            conv.append([clew.user(f"order {m} of parcel {n} " * 20) for m in range(100)])
        store.maintain()
        conv.append([clew.user("packed with the dictionary: order of parcel " * 20)])
    backup(path, fast_dir / "b.db")
    assert restore(fast_dir / "c.db", fast_dir / "b.db").messages == 3401
    rehearse(fast_dir / "points", backup_point(path, fast_dir / "points"))
    remove(fast_dir / "c.db")


def test_a_backup_of_a_store_that_is_not_there_any_more(path: Path, fast_dir: Path) -> None:
    """The path holds another store by now: no copy of that is made in this one's name."""
    with clew.open(fast_dir / "b.db") as other:
        other.profile("me").conversation("k").add(clew.user("another"))
    store = clew.open(path)
    os.rename(path, fast_dir / "moved.db")
    os.rename(fast_dir / "b.db", path)
    with pytest.raises(clew.StoreError):
        store.backup(fast_dir / "c.db")
    assert not (fast_dir / "c.db").exists()
    store.close()
    with pytest.raises(clew.StoreClosed):
        store.backup(fast_dir / "c.db")
