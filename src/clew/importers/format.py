"""A format: how it is told by its content, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from clew.importers.probe import Probe
from clew.importers.records import Event
from clew.importers.source import Source

Growth = Literal["cut", "branch"]


class Format(Struct, frozen=True, kw_only=True):
    """What is known of one format."""

    name: str
    """The `source` of its conversations and aliases: "claude-code"."""
    label: str
    """As people call it: "Claude Code"."""
    matches: Callable[[Probe], bool]
    """Whether a file or folder is of this format, by its content."""
    read: Callable[[Source], Iterator[Event]]
    """All it says, as a stream. Never raises for what the content is: what cannot be read is
    Damaged, what is not imported Skipped."""
    growth: Growth = "branch"
    """What a second child of a record is: "cut" in line formats that are written in time order (a
    rewind: the first line is hidden from there on), "branch" in trees and in records without ids.
    """
    universal: bool = False
    """Whether ids of records are unique everywhere, so that another file that begins with the same
    record is a resumed copy of the same conversation."""
    rewrites: bool = False
    """Whether the tool writes a record again under its id when it changes."""
    follows: bool = False
    """Whether what a line says is told as soon as the line was read, and what is held between lines
    is little: a growing file can then be read on where it ended."""
    places: tuple[str, ...] = ()
    """Where the tool keeps them: patterns under the home folder, for `--discover`."""
