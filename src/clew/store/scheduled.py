"""Scheduled backups: a point of the store every so often, each tested by a restore.

The job "backup" of the store is the lock and the clock of this: whoever claims it makes the point,
so hosts and timers in any number make one. The points of a store have a folder of their own in the
configured one, named after the path of its file: the doctor finds it however damaged the store is.
How the last run ended is a small file in there, written last. Whatever stops a run before leaves
the points and that file as they were, and what was half done goes with the next run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from clew.config.ages import micros
from clew.config.values import BackupConfig
from clew.domain.notes import JobRight
from clew.errors import ClewError, Corrupt, InputError, StoreError
from clew.store import jobs
from clew.store.backup_chain import backup_point, prune_points, rehearse
from clew.store.backup_packs import unusable, write
from clew.store.backup_points import Point, is_chain, prepare
from clew.store.copying import Progress
from clew.store.database import Database
from clew.store.holders import new_holder
from clew.store.lease import Lease
from clew.store.store import Store

JOB = "backup"
TTL = 3_600_000_000
"""Microseconds that the job is held without a sign of life. Reading a large store back gives none;
a holder that died is told by its process."""
RENEWED = 60.0
"""Seconds between two signs of life."""
EARLY = 10
"""A run is due so much of `every` early, a tenth: a timer that goes off each day at three would
find the last run, which ended some minutes past three, too young every other day."""
RESULT = "scheduled.json"
SERVER = (
    "is a database of a server, which [backup] does not back up; use the server's tools (pg_dump, "
    "point-in-time recovery): docs/operating/scale.md"
)


class Schedule(NamedTuple):
    """What [backup] says. `every` in microseconds, `keep` in points."""

    folder: Path
    every: int
    keep: int

    def place(self, store: str | os.PathLike[str]) -> Path:
        """Where the points of a store are: `agent-1f0c9a2b` in the folder."""
        real = os.path.realpath(store)
        return self.folder / f"{Path(real).stem}-{sha256(os.fsencode(real)).hexdigest()[:8]}"


class Result(Struct, frozen=True, kw_only=True):
    """How the last run ended. Times in microseconds."""

    ended_at: int
    error: str | None = None
    """Why it failed; None: its point was restored and verified."""
    good_at: int | None = None
    """When the newest good point was tested."""
    good_point: str | None = None


class Made(NamedTuple):
    """A point that was made, and restored and verified."""

    folder: Path
    point: Point


class _Stopped(Exception):
    """Nobody wants this run any more."""


def schedule_of(config: BackupConfig) -> Schedule | None:
    """None: backups are not scheduled. InputError for an age that is none, which a configuration
    that was read does not have."""
    if config.folder is None:
        return None
    try:
        every = micros(config.every)
    except ValueError:
        every = None
    if every is None:
        raise InputError(f"{config.every!r} is no age; give 12h, 1d or 1w")
    return Schedule(Path(config.folder).expanduser(), every, config.keep)


def run_for(store: Store, schedule: Schedule, progress: Progress | None = None) -> Made | None:
    """`run`, with a store that is open."""
    db = store._db  # pyright: ignore[reportPrivateUsage]  # of this package, as `run` is
    return run(db, schedule, progress)


def run(
    db: Database, schedule: Schedule, progress: Progress | None = None,
    going: Callable[[], bool] | None = None,
) -> Made | None:  # fmt: skip
    """Back up if it is due; None: not yet, another is at it, or `going` became false (asked now
    and then, in this thread). Raises what backup_point and a test of it raise, after it was noted;
    what failed is due again at once. InputError for a store on a server."""
    source = file_of(db)
    if source is None:
        raise InputError(f"this store {SERVER}")
    holder, early = new_holder(), schedule.every - schedule.every // EARLY
    right = db.write(lambda tx: jobs.claim(tx, db.kit, JOB, holder, TTL, early))
    if right is None:
        return None
    done = False
    try:
        made = _noted(db, source, schedule, _Alive(db, right, progress, going))
        done = True
        return made
    except _Stopped:
        return None
    finally:
        db.write(lambda tx: jobs.release(tx, db.kit, right, done))


def file_of(db: Database) -> Path | None:
    """The file of a store; None for one on a server."""
    backend = db.backend.engine if isinstance(db.backend, Lease) else db.backend
    path: str | None = getattr(backend, "path", None)  # that of a server has none
    return None if path is None else Path(path)


def last(place: Path) -> Result | None:
    """How the last run into this folder ended; None: there was none. OSError, Corrupt."""
    try:
        return msgspec.json.decode((place / RESULT).read_bytes(), type=Result)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise Corrupt(f"{place / RESULT} is damaged ({error}); the next run writes it") from error


def _noted(db: Database, source: Path, schedule: Schedule, alive: _Alive) -> Made:
    """Make a point, and write down how that went."""
    place, clock = schedule.place(source), db.kit.clock
    _prepare(schedule.folder, place)
    try:
        point = backup_point(source, place, None, alive, clock)
        rehearse(place, point, alive)
        _write(place, Result(ended_at=clock.now(), good_at=clock.now(), good_point=point.id))
        prune_points(place, schedule.keep)  # a point that fails its test takes no good one away
        return Made(place, point)
    except (ClewError, OSError) as error:
        if not (isinstance(error, ClewError) and error.retryable):
            _note_failure(place, error, clock.now())
        raise


def _note_failure(place: Path, error: Exception, now: int) -> None:
    before = None
    try:
        before = last(place)
        _write(place, Result(
            ended_at=now, error=str(error), good_at=before and before.good_at,
            good_point=before and before.good_point,
        ))  # fmt: skip
    except (OSError, StoreError) as second:
        error.add_note(f"and that could not be noted: {second}")


def _prepare(folder: Path, place: Path) -> None:
    """Make the folder, but not what it lies in: that may be a disk which is not mounted."""
    if not folder.parent.is_dir():
        raise InputError(
            f"there is no folder {folder.parent} for backups; mount its disk, make it, or change "
            f"`folder` of [backup]"
        )
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise unusable(error, f"cannot use {folder} for backups") from error
    prepare(place)


def _write(place: Path, result: Result) -> None:
    if is_chain(place):
        write(place / RESULT, msgspec.json.encode(result))


class _Alive:
    """The progress of a run: says that the job is at work, and ends it when nobody wants it."""

    def __init__(
        self, db: Database, right: JobRight, progress: Progress | None,
        going: Callable[[], bool] | None,
    ) -> None:  # fmt: skip
        self._db, self._right, self._progress, self._going = db, right, progress, going
        self._next = time.monotonic() + RENEWED

    def __call__(self, done: int, of: int) -> None:
        if self._going is not None and not self._going():
            raise _Stopped
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + RENEWED
            self._db.write(lambda tx: jobs.renew(tx, self._db.kit, self._right))
        if self._progress is not None:
            self._progress(done, of)
