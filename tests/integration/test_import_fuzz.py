"""Damaged files of every format through the whole importer. A usual run is the same each time; one
that searches for new faults goes on for as long as wanted:

    pytest tests/integration/test_import_fuzz.py --fuzz 3600

A failure names its seed and turn, which `--fuzz-seed` takes, and where the damaged file is kept.
"""

from __future__ import annotations

import io
import secrets
import shutil
import signal
import time
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from types import FrameType
from typing import NamedTuple

import pytest

import clew
from clew.importers.bring import bring, find
from clew.importers.probe import probe
from clew.importers.registry import FORMATS, format_of
from clew.importers.run import Options
from clew.importers.source import Source
from clew.store.profile import Profile
from imports import SAMPLES, samples, shown
from strategies.damage import break_bytes, break_file
from strategies.files import EXAMPLE, FORMS
from strategies.values import VALUES, Place, Tree, alter_file, doubled, dropped, replaced

HANG = 120
"""Seconds that no file of these sizes takes."""
LARGEST = 300_000
"""Bytes of a sample that is damaged: a larger one would take the time of many."""
LANDED = 3
"""One in so many is really imported, the others on trial."""
TURNS = 300
"""Of a usual run, about three seconds."""
CASES = 90
"""Places of a format that get another value in a usual run, about a second."""
REFUSED = "the database cannot be read: "
"""How the only error begins that a damaged file may end with."""
NAMES = [each.name for each in FORMATS]
PACKINGS = {"stored": zipfile.ZIP_STORED, "deflated": zipfile.ZIP_DEFLATED,
            "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}  # fmt: skip
ARCHIVED = ("chatgpt-export/chatgpt-tree-branches.json", "atif/multiagent.json",
            "claude-code/agentpile-compaction.jsonl", "openai-chat/har-chat-tools.har")  # fmt: skip


# ---------------------------------------------------------------------- by chance


class Run(NamedTuple):
    """Which turns to take, and what they are made of."""

    seed: str
    turns: int | None
    until: float

    @classmethod
    def of(cls, config: pytest.Config, format: str) -> Run:
        seconds, given = config.getoption("--fuzz"), config.getoption("--fuzz-seed")
        if given is not None:
            seed, _, turn = given.partition(":")
            return cls(seed, int(turn) + 1 if turn else TURNS, 0)
        if seconds is None:
            return cls(format, TURNS, 0)
        return cls(secrets.token_hex(4), None, time.monotonic() + seconds)

    def __iter__(self) -> Iterator[int]:
        for turn in count():
            if turn == self.turns or (self.turns is None and time.monotonic() > self.until):
                return
            yield turn


@pytest.mark.parametrize("format", NAMES)
def test_no_damage_stops_it(format: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    run = Run.of(pytestconfig, format)
    wholes = _wholes(format, tmp_path / "whole")
    kept = tmp_path / "in"
    with clew.open(tmp_path / "store" / "s.db") as store:
        profile = store.profile("p")
        for turn in run:
            random = Random(f"{run.seed} {format} {turn}")
            path = _copy(random.choice(wholes), kept)
            random.choice((break_file, alter_file))(random, path)
            with _told(f"--fuzz-seed {run.seed}:{turn}, file {path}"):
                _import(profile, kept, is_dry=random.randrange(LANDED) > 0)
        assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "store", "whole"]
        assert not store.verify()
        shown(profile)


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS.keys())
def test_no_damage_to_an_archive_stops_it(
    packing: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Bytes anywhere, and more of them in the headers."""
    run = Run.of(pytestconfig, f"zip {packing}")
    whole = _archive(packing)
    heads = [at for at in range(len(whole)) if whole.startswith(b"PK", at)]
    kept = tmp_path / "in"
    kept.mkdir()
    path = kept / "export.zip"
    with clew.open(tmp_path / "store" / "s.db") as store:
        for turn in run:
            random = Random(f"{run.seed} zip {packing} {turn}")
            data = bytearray(whole if random.randrange(3) else break_bytes(random, whole))
            for _ in range(random.randint(1, 4)):
                at = random.choice(heads) + random.randrange(60)
                data[at : at + 1] = bytes([random.choice((0, 255, random.randrange(256)))])
            path.write_bytes(data)
            with _told(f"--fuzz-seed {run.seed}:{turn}, file {path}"):
                sources, walk = find([kept])
                done = bring(store.profile("p"), sources, walk, Options(dry_run=True))
                assert all(source.error is None or source.error for source in done.sources)
                assert all(why for _, why in done.failed)


def _archive(packing: int) -> bytes:
    """An archive with samples of some formats; the names need more than ASCII."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", packing) as archive:
        for name in ARCHIVED:
            archive.writestr(f"\u00e9/{name}", (SAMPLES / name).read_bytes())
    return found.getvalue()


# ---------------------------------------------------------------------- one value after the other


class Case(NamedTuple):
    """A value of a file. `file`: the path in the folder that the sample is, or "."."""

    whole: Path
    file: Path
    tree: Tree
    place: Place

    def changes(self) -> Iterator[tuple[str, AbstractContextManager[None]]]:
        """All that is done to it."""
        for value in VALUES:
            yield f"{value!r}"[:60], replaced(self.place, value)
        yield "dropped", dropped(self.place)
        yield "doubled", doubled(self.place, "x")


@pytest.mark.parametrize("format", NAMES)
def test_any_value_may_stand_anywhere(
    format: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Nothing raises, nothing that a store refuses loses the whole file, and what was imported can
    be shown. A usual run takes some places and one change of each, `--fuzz` all changes of as many
    as there is time for."""
    seconds = pytestconfig.getoption("--fuzz")
    random = Random(format if seconds is None else secrets.token_hex(4))
    until = time.monotonic() + (seconds or 0)
    cases = _cases(format, tmp_path / "whole")
    random.shuffle(cases)
    kept = tmp_path / "in"
    with clew.open(tmp_path / "store" / "s.db") as store:
        for number, case in enumerate(cases[:CASES] if seconds is None else cases):
            if seconds is not None and time.monotonic() > until:
                break
            changes = list(case.changes())
            for what, change in [random.choice(changes)] if seconds is None else changes:
                path = _copy(case.whole, kept)
                with change:
                    case.tree.write(path / case.file)
                profile = store.profile(f"{number} {what[:20]!a}")
                with _told(f"{what} at {case.place.shape} of {path / case.file}"):
                    _import(profile, kept, is_dry=False)
                    shown(profile)
        assert not store.verify()


def _cases(format: str, folder: Path) -> list[Case]:
    """A value of each shape that is in any file of a format: in the smallest one."""
    found: dict[str, Case] = {}
    for whole in sorted(_wholes(format, folder), key=_size):
        for file in _files(whole):
            tree = Tree(file)
            for place in tree.places():
                where = Path(file.relative_to(whole))
                found.setdefault(place.shape, Case(whole, where, tree, place))
    return list(found.values())


def _files(whole: Path) -> list[Path]:
    return sorted(each for each in [whole, *whole.rglob("*")] if each.is_file())


def _size(whole: Path) -> int:
    return sum(each.stat().st_size for each in _files(whole))


# ---------------------------------------------------------------------- both


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
        assert source.error is None or source.error.startswith(REFUSED), source.error
        assert all(place.reason for place in source.damaged)
