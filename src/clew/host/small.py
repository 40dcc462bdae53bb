"""Small requests that stand beside a conversation: one question, no tools, no history."""

from __future__ import annotations

from clew.context.build import Context
from clew.context.entries import Entry
from clew.context.families import family_of
from clew.context.measure import FRAME, FRAME_BYTES
from clew.context.sections import Item
from clew.context.tokens import count_text
from clew.domain.messages import Role
from clew.domain.parts import Text
from clew.errors import NotFound
from clew.providers.api import Model


def small_context(prompt: str, text: str, model: Model) -> Context:
    """A context of a system prompt and one message of a user."""
    system = count_text(prompt) + FRAME
    tokens = count_text(text) + FRAME
    size = len(text.encode("utf-8", "replace")) + FRAME_BYTES
    asked = Item(Entry(Role.USER, (Text(text),)), "tail", tokens, size)
    return Context(
        prompt=prompt, toolset=None, items=(asked,), model=model.name, generation=0, up_to_seq=0,
        system=system, tokens=system + tokens, expected=system + tokens,
        bytes=len(prompt.encode("utf-8", "replace")) + FRAME_BYTES + size, limit=model.window,
        alternates=family_of(model.name).alternates,
    )  # fmt: skip


def no_blob(digest: str) -> bytes:
    """For requests without images and files."""
    raise NotFound("blob", digest)
