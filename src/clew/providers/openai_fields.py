"""Fields of what a server sent, of whose types nobody is sure."""

from __future__ import annotations

from typing import Any, cast

Json = dict[str, Any]


def text_of(value: object) -> str:
    """A text; empty for anything else."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Json:
    """An object; empty for anything else."""
    return cast(Json, value) if isinstance(value, dict) else {}


def objects_of(value: object) -> list[Json]:
    """A list of objects; empty for anything else, and without what is none."""
    listed = cast(list[object], value) if isinstance(value, list) else []
    return [cast(Json, each) for each in listed if isinstance(each, dict)]


def count_of(value: object) -> int:
    """A number of things; 0 for anything else."""
    return max(0, value) if isinstance(value, int) else 0


def number_of(value: object) -> float | None:
    """A number that is not negative."""
    return float(value) if isinstance(value, int | float) and value >= 0 else None
