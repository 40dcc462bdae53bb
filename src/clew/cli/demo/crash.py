"""Starts a writer, kills it while it writes, and looks for what it had acknowledged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Timer
from time import monotonic

from msgspec import Struct

from clew.cli.demo.writer import text_of
from clew.domain.messages import Message

WANTED = 300
"""Acknowledgements that are waited for."""
LONG_ENOUGH = 1.0
"""Seconds from the first acknowledgement, where a disk takes long to sync."""
PATIENCE = 30.0
"""Seconds until a writer that says nothing is given up."""


class Ack(Struct, frozen=True):
    """A message that the writer was told is stored."""

    seq: int
    uid: str


class Killed(Struct, frozen=True, kw_only=True):
    """A writer's life."""

    pid: int
    acks: tuple[Ack, ...]
    seconds: float
    """From the first acknowledgement to the kill."""
    ended_itself: bool
    """It was gone before it could be killed."""


def kill_a_writer(store: Path, profile: str, conversation: str) -> Killed:
    """Let a process append to a conversation, and kill it in the middle of that.

    SIGKILL, or what Windows has for it: the process runs no more line of code.
    """
    command = [sys.executable, "-P", "-m", "clew.cli.demo.writer"]
    # The modules that are in use here, wherever they were found: -m alone would look in the current
    # folder first, where anything may lie.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    acks: list[Ack] = []
    first = last = monotonic()
    with subprocess.Popen(
        [*command, str(store), profile, conversation],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, encoding="ascii", env=env,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        giving_up = Timer(PATIENCE, process.kill)
        giving_up.start()
        try:
            for line in process.stdout:
                acks += acknowledged(line)
                last = monotonic()
                first = first if len(acks) > 1 else last
                if len(acks) >= WANTED or last - first > LONG_ENOUGH:
                    ended_itself = process.poll() is not None
                    break
            else:
                ended_itself = True
        finally:
            giving_up.cancel()
            process.kill()
        acks += acknowledged(process.stdout.read())  # told before it died
    return Killed(
        pid=process.pid, acks=tuple(acks), seconds=last - first, ended_itself=ended_itself
    )


def acknowledged(said: str) -> list[Ack]:
    """The acknowledgements in what a writer printed. A line that it could not end is none."""
    lines = said.split("\n")[:-1]
    return [Ack(int(seq), uid) for seq, uid in (line.split() for line in lines)]


def missing(acks: Sequence[Ack], messages: Iterable[Message]) -> tuple[Ack, ...]:
    """What was acknowledged and is not there as it was written."""
    there = {message.seq: (message.uid, message.text) for message in messages}
    return tuple(ack for ack in acks if there.get(ack.seq) != (ack.uid, text_of(ack.seq)))
