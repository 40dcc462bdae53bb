"""Items of the Responses API: what could be sent as the `input` of a request."""

from __future__ import annotations

from collections.abc import Iterator

from clew.context.responses import Item, items_of
from clew.exporters.text import json_list
from clew.exporters.transcript import Transcript


def items(source: Transcript) -> Iterator[Item]:
    """In the order of the parts, so that thinking stands right before what came of it."""
    return items_of(source.entries(), source.blob)


def text(source: Transcript) -> Iterator[str]:
    """The file: {"model", "input", "instructions"}. A model that nobody named is null, since a
    request has the field, and by it a reader knows the form."""
    prompt = {} if source.prompt is None else {"instructions": source.prompt}
    return json_list(items(source), {"model": source.info.model}, "input", prompt)
