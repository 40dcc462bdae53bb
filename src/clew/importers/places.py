"""The usual places of other tools under a home folder."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from clew.importers.registry import FORMATS


class Discovered(Struct, frozen=True):
    """A place that is there."""

    label: str
    """The tool, as people call it."""
    path: Path


def discover(home: Path | None = None) -> list[Discovered]:
    """The usual places that there are, by tool. `home`: the folder to look under."""
    base = home or Path.home()
    found: list[Discovered] = []
    for each in FORMATS:
        for pattern in each.places:
            found.extend(Discovered(each.label, path) for path in sorted(base.glob(pattern)))
    return found


class Watched(Struct, frozen=True):
    """The usual places as folders and files that are there, and what of them is meant: more of it
    may appear in them."""

    home: Path
    places: tuple[Discovered, ...]

    def wanted(self, path: Path) -> bool:
        """Whether a file is one of those, in one of those, or the -wal of one."""
        parts = path.relative_to(self.home).parts
        parts = (*parts[:-1], parts[-1].removesuffix("-wal"))
        return any(_fits(Path(each).parts, parts) for form in FORMATS for each in form.places)


def watched(home: Path | None = None) -> Watched:
    """As `discover`, for one who stays."""
    base = home or Path.home()
    found: dict[Path, Discovered] = {}
    for each in FORMATS:
        for pattern in each.places:
            path = base / _fixed(pattern)
            if path.exists():
                found.setdefault(path, Discovered(each.label, path))
    apart = [place for path, place in found.items() if not found.keys() & set(path.parents)]
    return Watched(base, tuple(apart))


def _fixed(pattern: str) -> Path:
    """The beginning of a pattern that stands for one path."""
    fixed = Path()
    for part in Path(pattern).parts:
        if any(mark in part for mark in "*?["):
            break
        fixed /= part
    return fixed


def _fits(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether a path, or a folder that it is in, is one of the pattern."""
    if not pattern:
        return True
    if not parts:
        return False
    if pattern[0] == "**":
        return _fits(pattern[1:], parts) or _fits(pattern, parts[1:])
    return fnmatchcase(parts[0], pattern[0]) and _fits(pattern[1:], parts[1:])
