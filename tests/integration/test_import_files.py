"""Every sample file: imported whole, again, and growing record by record."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from exporting import exported

import clew
from clew.store.profile import Profile
from imports import SAMPLES, conversations, import_into, samples, shown

LINES = [name for name in samples() if name.endswith(".jsonl")]
TWICE = 60
"""Places at which a file is cut in two."""


@pytest.fixture
def profiles(tmp_path: Path) -> Iterator[tuple[Profile, Profile]]:
    with clew.open(tmp_path / "a.db") as one, clew.open(tmp_path / "b.db") as two:
        yield one.profile("p"), two.profile("p")
        assert not one.verify()
        assert not two.verify()


def place(tmp_path: Path, name: str) -> Path:
    """A copy of a sample that may be written to, under its own name."""
    target = tmp_path / "in" / Path(name).name
    target.parent.mkdir(exist_ok=True)
    if (SAMPLES / name).is_dir():
        shutil.copytree(SAMPLES / name, target)
    else:
        shutil.copy(SAMPLES / name, target)
    return target


@pytest.mark.parametrize("name", samples())
def test_importing_twice_adds_nothing(
    name: str, tmp_path: Path, profiles: tuple[Profile, Profile]
) -> None:
    path = place(tmp_path, name)
    first = import_into(profiles[0], path)
    assert first.totals.messages > 0
    assert first.totals.conversations > 0
    before = shown(profiles[0])
    again = import_into(profiles[0], path)
    assert (again.totals.messages, again.totals.conversations, again.totals.cuts) == (0, 0, 0)
    assert again.totals.unchanged == first.totals.conversations
    assert shown(profiles[0]) == before


@pytest.mark.parametrize("name", samples())
def test_a_dry_run_tells_what_would_come_and_writes_nothing(
    name: str, tmp_path: Path, profiles: tuple[Profile, Profile]
) -> None:
    path = place(tmp_path, name)
    dry = import_into(profiles[0], path, dry_run=True)
    assert shown(profiles[0]) == []
    done = import_into(profiles[0], path)
    assert dry.totals == done.totals


@pytest.mark.parametrize("name", LINES)
def test_a_file_that_grows_line_by_line_gives_the_log_of_the_whole(
    name: str, tmp_path: Path, profiles: tuple[Profile, Profile]
) -> None:
    path = place(tmp_path, name)
    rows = path.read_bytes().splitlines(keepends=True)
    import_into(profiles[0], path)
    added = 0
    for count in range(1, len(rows) + 1):
        path.write_bytes(b"".join(rows[:count]))
        added += _import_part(profiles[1], path)
    assert shown(profiles[1]) == shown(profiles[0])


@pytest.mark.parametrize("name", LINES)
def test_a_file_cut_anywhere_and_then_whole_gives_the_log_of_the_whole(
    name: str, tmp_path: Path
) -> None:
    path = place(tmp_path, name)
    rows = path.read_bytes().splitlines(keepends=True)
    whole = None
    step = max(1, len(rows) // TWICE)
    with clew.open(tmp_path / "s.db") as store:
        for nth, (count, _) in enumerate(pairwise(range(0, len(rows) + step, step))):
            profile = store.profile(f"p{nth}")
            path.write_bytes(b"".join(rows[:count]))
            if count:
                _import_part(profile, path)
            path.write_bytes(b"".join(rows))
            import_into(profile, path)
            whole = whole or shown(profile)
            assert shown(profile) == whole
        assert not store.verify()


def _import_part(profile: Profile, path: Path) -> int:
    """Import the beginning of a file, of which it may not be told yet what it is."""
    return import_into(profile, path).totals.messages


@pytest.mark.parametrize("name", samples())
def test_exported_and_imported_again_it_is_equal(
    name: str, tmp_path: Path, profiles: tuple[Profile, Profile]
) -> None:
    path = place(tmp_path, name)
    import_into(profiles[0], path)
    file = tmp_path / "exported.jsonl"
    file.write_bytes(exported(profiles[0]))
    done = import_into(profiles[1], file)
    assert done.totals.messages > 0
    assert shown(profiles[1]) == shown(profiles[0])
    assert ids(profiles[1]) == ids(profiles[0])
    assert import_into(profiles[1], file).totals.messages == 0
    # The tool's own file is known there, too.
    assert import_into(profiles[1], path).totals.messages == 0


def ids(profile: Profile) -> list[str]:
    return sorted(conversation.id for conversation in conversations(profile))
