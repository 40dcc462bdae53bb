"""Arguments against a tool's JSON schema, before the tool is asked: what is wrong, for a model.

A schema is somebody else's. One that is broken, or refers to what is not in it, checks nothing: the
tool itself will say. Nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, cast

import jsonschema
import jsonschema.validators
import referencing
import referencing.exceptions

_MOST = 5
"""Faults that are told at once."""
_LONGEST = 300
"""Characters of one fault; some hold the whole value."""


def faults(schema: dict[str, Any], arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """What is wrong with the arguments; empty when nothing is, or the schema cannot tell."""
    try:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        errors = kind(schema, registry=referencing.Registry()).iter_errors(arguments)
        return tuple(_told(error) for error in islice(_sorted(errors), _MOST))
    except (
        jsonschema.SchemaError, referencing.exceptions.Unresolvable, RecursionError, TypeError,
        ValueError,
    ):  # fmt: skip
        return ()


def _sorted(errors: Iterable[Any]) -> list[Any]:
    """By the place, so that the same call gets the same text."""
    return sorted(errors, key=lambda error: ([str(p) for p in error.absolute_path], error.message))


def _told(error: Any) -> str:
    place = ".".join(str(each) for each in cast(Iterable[object], error.absolute_path))
    text = str(error.message)
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return f"{place}: {text}" if place else text
