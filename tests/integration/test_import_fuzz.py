"""Damaged files of every format through the whole importer, for as long as wanted:

    pytest tests/integration/test_import_fuzz.py --fuzz 3600

A failure names its seed, which `--fuzz-seed` takes, and where the damaged file is kept.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from types import FrameType

import pytest

import clew
from clew.importers.bring import bring, find
from clew.importers.probe import probe
from clew.importers.registry import FORMATS, format_of
from clew.importers.run import Options
from clew.importers.source import Source
from clew.store.profile import Profile
from imports import SAMPLES, samples, shown
from strategies.damage import break_file
from strategies.files import EXAMPLE, FORMS

HANG = 120
"""Seconds that no file of these sizes takes."""
LARGEST = 300_000
"""Bytes of a sample that is damaged: a larger one would take the time of many."""
LANDED = 10
"""One in so many is really imported, the others on trial."""


@pytest.mark.parametrize("format", [each.name for each in FORMATS])
def test_no_damage_stops_it(format: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    seed = pytestconfig.getoption("--fuzz-seed") or secrets.token_hex(4)
    until = time.monotonic() + pytestconfig.getoption("--fuzz")
    wholes = _wholes(format, tmp_path / "whole")
    kept = tmp_path / "in"
    with clew.open(tmp_path / "store" / "s.db") as store:
        profile = store.profile("p")
        for turn in count():
            if turn and time.monotonic() > until:
                break
            random = Random(f"{seed} {format} {turn}")
            path = _copy(random.choice(wholes), kept)
            break_file(random, path)
            with _told(f"--fuzz-seed {seed}, turn {turn}, file {path}"):
                _import(profile, kept, is_dry=random.randrange(LANDED) > 0)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "store", "whole"]
        assert not store.verify()
        shown(profile)


def _wholes(format: str, folder: Path) -> list[Path]:
    """Files of a format: samples, and what its builders write."""
    found = [SAMPLES / name for name in samples()]
    found = [path for path in found if path.is_dir() or path.stat().st_size <= LARGEST]
    found = [path for path in found if _name(path) == format]
    for form in FORMS:
        if form.format == format:
            (folder / form.name).mkdir(parents=True)
            found.append(form.write(EXAMPLE, folder / form.name))
    return found


def _name(path: Path) -> str | None:
    format = format_of(probe(Source(path)))
    return format.name if format else None


def _copy(whole: Path, kept: Path) -> Path:
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir()
    target = kept / whole.name
    if whole.is_dir():
        shutil.copytree(whole, target)
    else:
        shutil.copy(whole, target)
    return target


class Hung(BaseException):
    """None that anybody catches."""


def _hung(signum: int, frame: FrameType | None) -> None:
    raise Hung(f"it took more than {HANG} seconds")


@contextmanager
def _told(which: str) -> Iterator[None]:
    """What fails in here, or never ends, says which file it was."""
    before = signal.signal(signal.SIGALRM, _hung)
    signal.alarm(HANG)
    try:
        yield
    except BaseException as error:
        error.add_note(which)
        raise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _import(profile: Profile, folder: Path, is_dry: bool) -> None:
    """Import all that is in a folder. What it says of a file is for a person, whatever it is."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    sources, walk = find([folder])
    done = bring(profile, sources, walk, Options(dry_run=is_dry))
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    for source in done.sources:
        assert "RecursionError" not in (source.error or "")
        assert source.error != ""
        assert all(place.reason for place in source.damaged)
