"""Who holds a right: machine, boot, process namespace, process, its start time, and a nonce.

A pid alone lies: it is reused, and another container or machine has its own. A holder is called
dead only when that can be known; else its right expires by time.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from functools import cache
from pathlib import Path

UNKNOWN = "?"


def new_holder() -> str:
    """An identity of this process for one holder (host, thread, task)."""
    return f"{_machine()}:{_boot()}:{_namespace()}:{os.getpid()}:{_start(os.getpid())}:" + (
        secrets.token_hex(4)
    )


def is_dead(holder: str, *, one_machine: bool = True) -> bool:
    """True only if the process that minted this holder is known to have ended.

    `one_machine`: the store is on one, so that another boot under its name is an earlier one. Where
    several share a store that says nothing: machines made from one image have one name."""
    fields = holder.split(":")
    if len(fields) != 6:
        return False
    machine, boot, namespace, pid, start, _ = fields
    if UNKNOWN in (boot, start, _boot()):
        return False
    if boot != _boot():  # another machine, unless it is known to be this one before a restart
        return one_machine and machine == _machine() != UNKNOWN
    if namespace != _namespace():
        return False
    return not pid.isdecimal() or _start(int(pid)) != start


@cache
def _machine() -> str:
    text = _read("/etc/machine-id")
    return hashlib.sha256(text.encode()).hexdigest()[:8] if text else UNKNOWN


@cache
def _boot() -> str:
    text = _read("/proc/sys/kernel/random/boot_id")
    return text.replace("-", "")[:12] if text else UNKNOWN


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return UNKNOWN


def _start(pid: int) -> str:
    """Start time of a process in clock ticks since boot; "?" unknown, "" no such process."""
    if not Path("/proc/self/stat").exists():
        return UNKNOWN
    text = _read(f"/proc/{pid}/stat")
    # The second field, the name, may hold spaces and parentheses: count from the last one.
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text("ascii", "replace").strip()
    except OSError:
        return ""
