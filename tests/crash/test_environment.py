"""What a machine does to an open store, done for real: the disk fills, a limit of the process is
met, the folder takes no writes or goes away. The caller is told, and nothing has to be mended by
hand once it is over.

Each runs in a process of its own, which prints a line for each thing that it saw.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import clew

START = """
import json, os, resource, shutil, sys
from pathlib import Path
import clew
folder = Path(sys.argv[1])
store = clew.open(folder / "store.db", spool=False)
conv = store.profile("p").conversation("c")
number = 0

def put(size=1):
    global number
    number += 1
    key = f"k{number}"
    try:
        conv.append([clew.user(os.urandom(size // 2 + 1).hex(), key=key)])
    except clew.ClewError as error:
        tell(error=type(error).__name__, kinds=[k.__name__ for k in type(error).__mro__], key=key,
             reason=getattr(error, "reason", None), text=str(error))
        return False
    tell(stored=key)
    return True

def tell(**said):
    print(json.dumps(said), flush=True)

put()
"""
END = """
assert [m.key for m in conv.messages()][:1] == ["k1"]
tell(verify=list(map(str, store.verify())))
store.close()
"""
Said = list[dict[str, Any]]


def run(folder: Path, script: str, mounts: bool = False) -> Said:
    """`mounts`: in a namespace of its own, in which it may mount."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    apart = ["unshare", "--mount", *rights] if mounts else []
    command = [*apart, sys.executable, "-c", START + script, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def stored(folder: Path, said: Said) -> None:
    """All that was acknowledged is there, and only what was; the store takes the next."""
    keys = [line["stored"] for line in said if "stored" in line]
    with clew.open(folder / "store.db", spool=False) as store:
        conv = store.profile("p").conversation("c")
        assert [message.key for message in conv.messages()] == keys
        conv.append([clew.user("and on", key="and on")])
        assert store.verify() == []


def errors(said: Said) -> Said:
    return [line for line in said if "error" in line]


def test_a_disk_that_is_full_says_so_and_goes_on_when_there_is_space(fast_dir: Path) -> None:
    """A file system of 3 MB of its own."""
    script = """
import subprocess
store.close()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "small", folder], check=True)
store = clew.open(folder / "store.db", spool=False)
conv = store.profile("p").conversation("c")
(folder / "ballast").write_bytes(bytes(200_000))
number = 0
while put(60_000):
    pass
assert not put(60_000)
(folder / "ballast").unlink()
assert put()
"""
    leave = """
for file in folder.iterdir():
    shutil.copy(file, folder.parent / "after")
"""
    for name in ("small", "after"):
        (fast_dir / name).mkdir()
    said = run(fast_dir / "small", script + END + leave, mounts=True)[1:]
    assert [(e["error"], e["reason"]) for e in errors(said)] == [("StoreFull", "ENOSPC")] * 2
    assert said[-1] == {"verify": []}
    stored(fast_dir / "after", said)


def test_a_limit_on_the_size_of_files_is_a_full_disk(fast_dir: Path) -> None:
    script = """
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
while put(60_000):
    pass
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert put(60_000)
"""
    said = run(fast_dir, script + END)
    assert [(e["error"], e["reason"]) for e in errors(said)] == [("StoreFull", "EFBIG")]
    assert said[-1] == {"verify": []}
    stored(fast_dir, said)


def test_no_descriptors_left_is_told_and_passes(fast_dir: Path) -> None:
    """What is open goes on; what has to be opened waits for better times."""
    script = """
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
assert put()
list(conv.messages())
try:
    clew.open(folder / "other.db", spool=False)
except clew.StoreError as error:
    tell(other=type(error).__name__, reason=getattr(error, "reason", None))
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
clew.open(folder / "other.db", spool=False).close()
"""
    said = run(fast_dir, script + END)
    assert [line for line in said if "other" in line] == [
        {"other": "StoreUnusable", "reason": "EMFILE"}
    ]
    assert errors(said) == []
    stored(fast_dir, said)


def test_a_folder_that_can_only_be_read(fast_dir: Path) -> None:
    """Mounted read-only while the store was closed: it is read, and a write says what is in the
    way. Mounted writable again, the next to open it writes."""
    script = """
import subprocess
store.close()
subprocess.run(["mount", "--bind", folder, folder], check=True)
os.chdir(folder)
subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
store = clew.open(folder / "store.db", spool=False)
conv = store.profile("p").conversation("c")
assert [m.key for m in conv.messages()] == ["k1"]
assert not put()
store.close()
subprocess.run(["mount", "-o", "remount,bind,rw", folder], check=True)
store = clew.open(folder / "store.db", spool=False)
conv = store.profile("p").conversation("c")
assert put()
"""
    said = run(fast_dir, script + END, mounts=True)
    (error,) = errors(said)
    assert "StoreUnusable" in error["kinds"]
    assert "folder" in error["text"]
    stored(fast_dir, said)


def test_a_folder_that_was_deleted_takes_no_message(fast_dir: Path) -> None:
    """Nothing may be acknowledged that no path leads to."""
    inside = fast_dir / "inside"
    inside.mkdir()
    script = """
shutil.rmtree(folder)
assert not put()
assert not put()
store.close()
"""
    said = run(inside, script)
    assert {e["error"] for e in errors(said)} == {"StoreReplaced"}
    assert not inside.exists()
