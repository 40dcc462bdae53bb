"""What the store finds out about a message while it prepares it: tokens, and pixels of images."""

from __future__ import annotations

import base64

import clew
from clew.context.tokens import count_parts, count_text

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
REQUEST = clew.user("Keep the ticket id at the end of every reply, please.")


def test_a_message_is_counted_once(conv: clew.Conversation) -> None:
    """Where the tables are loaded; a count that the caller brings is kept."""
    count_text("")
    conv.append([REQUEST, clew.user("x", tokens=7)])
    counted, given = conv.messages()
    assert counted.tokens == count_parts(counted.parts) == count_parts(REQUEST.parts)
    assert given.tokens == 7


def test_a_count_is_no_part_of_what_is_compared(conv: clew.Conversation) -> None:
    """Written before the tables were loaded, and again afterwards."""
    first = conv.append([clew.user("x", key="k", tokens=1)])
    count_text("")
    assert conv.append([clew.user("x", key="k")]).seqs == first.seqs


def test_an_image_keeps_its_pixels(conv: clew.Conversation) -> None:
    """A model is billed for them, and the bytes are not at hand when a context is built."""
    image = clew.Image(data=PNG)
    parts = (image, clew.ToolResult("c", (clew.Image(data=PNG, width=9, height=8),)))
    conv.append([clew.Draft(role=clew.Role.USER, parts=(image,), key="k")])
    conv.append([clew.Draft(role=clew.Role.USER, parts=parts)])
    first, second = conv.messages()
    digest = first.parts[0].hash  # pyright: ignore
    assert first.parts == (clew.Image(hash=digest, size=len(PNG), width=1, height=1),)
    inside = clew.Image(hash=digest, size=len(PNG), width=9, height=8)
    assert second.parts[1] == clew.ToolResult("c", (inside,))
    again = conv.append([clew.Draft(role=clew.Role.USER, parts=(image,), key="k")])
    assert (again.new, again.seqs) == (0, (first.seq,))
    assert conv.append([first.draft()]).new == 0
