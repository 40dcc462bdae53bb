"""What is wrong with a configuration: where, what, and what to do. Never the value itself where it
could be a key."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from clew.errors import InputError

SHOWN = 3
"""Problems that one error tells; its `problems` are all of them."""


class Origin(Struct, frozen=True):
    """Where a value was written: a file with a line, or the name of an environment variable."""

    name: str
    line: int | None = None
    """From 1; None for a variable, and where a file is wrong as a whole."""
    column: int | None = None
    is_variable: bool = False

    @property
    def shown(self) -> str:
        """FILE, FILE:LINE, FILE:LINE:COLUMN or VARIABLE."""
        numbers = (number for number in (self.line, self.column) if number is not None)
        return ":".join((self.name, *map(str, numbers)))


class Fault(Struct, frozen=True):
    """One thing that is wrong."""

    origin: Origin
    key: str
    """Dotted: limits.steps; "" for the file as a whole."""
    text: str
    """What is wrong, what is allowed, and the remedy."""

    @property
    def shown(self) -> str:
        """One line for people."""
        return ": ".join(filter(None, (self.origin.shown, self.key, self.text)))


class ConfigError(InputError):
    """The configuration cannot be used. `problems`: all that is wrong, in the order of the file."""

    def __init__(self, problems: Sequence[Fault]) -> None:
        self.problems = tuple(problems)
        told = "; ".join(each.shown for each in self.problems[:SHOWN])
        more = len(self.problems) - SHOWN
        if more > 0:
            told += f"; and {more} more: `clew config check` lists them all"
        super().__init__(told)
