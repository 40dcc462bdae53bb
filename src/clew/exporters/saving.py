"""Files that are there whole or not at all, readable by their owner only."""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from clew.errors import InputError

_SLUG, _BYTES, _ID = 60, 120, 26
Write = Callable[[bytes], object]


def save(path: Path, force: bool, make: Callable[[Write], None]) -> int:
    """Have `make` write a new file `path`; gives its size. InputError when it is there already,
    unless `force`, or when its folder is not; whatever is raised, nothing is left behind."""
    check(path, force)
    partial = path.with_name(f".clew-{os.urandom(8).hex()}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            make(file.write)
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
        _publish(partial, path, force)
    finally:
        with suppress(OSError):
            partial.unlink()
    return size


def check(path: Path, force: bool) -> None:
    """Refuse what `save` would refuse in the end."""
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file in it")
    if os.path.lexists(path) and not force:
        raise taken(path)


def taken(path: Path) -> InputError:
    return InputError(f"{path} exists already; give another name, or --force to replace it")


def _publish(partial: Path, path: Path, force: bool) -> None:
    """Give the file its name. Without `force` never over one that came meanwhile."""
    if not force:
        try:
            os.link(partial, path)
            return
        except FileExistsError:
            raise taken(path) from None
        except OSError:  # a file system without links
            if os.path.lexists(path):
                raise taken(path) from None
    os.replace(partial, path)


def file_name(title: str, id: str, extension: str) -> str:
    """A name for a conversation's file: letters and digits of its title, and its id."""
    return f"{_slug(title)}{_plain_id(id)}.{extension}"


def _slug(title: str) -> str:
    """Nothing of a title is a separator, a dot, a space or a control."""
    text = unicodedata.normalize("NFC", title[: _SLUG * 4])
    kept = "".join(c if c.isalnum() and c.isprintable() else "-" for c in text)
    words = re.sub("-+", "-", kept).strip("-")[:_SLUG]
    while len(words.encode()) > _BYTES:
        words = words[:-1]
    words = words.rstrip("-")
    return f"{words}-" if words else ""


def _plain_id(id: str) -> str:
    """The id; of another tool's what is harmless, and a hash."""
    plain = re.sub("[^0-9A-Za-z]", "", id)[:_ID]
    if id and plain == id:
        return plain
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else digest
