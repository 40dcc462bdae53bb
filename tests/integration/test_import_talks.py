"""A talk written in every format, imported: the log says what was said."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from clew.domain.parts import Image, Part
from clew.importers.registry import FORMATS
from clew.store.conversation import Conversation
from clew.store.profile import Profile
from clew.store.store import Store
from imports import conversations, import_into, shown
from strategies.conversations import Line, told
from strategies.files import FORMS, Form

SPOKEN = [form for form in FORMS if form.says is not None]
WRITTEN = 1_780_000_000
"""When all files were written, seconds: the time of messages that have none."""
REWRITTEN = {format.name for format in FORMATS if format.rewrites}
"""Formats in which an older version of a message may be in the log, under the newer one."""
GROWING = [form for form in FORMS if form.is_lines]


@pytest.fixture
def store(fast_dir: Path) -> Iterator[Store]:
    with clew.open(fast_dir / "s.db") as store:
        yield store
        assert not store.verify()


def fresh(store: Store) -> Profile:
    """A profile that nothing was imported into."""
    return store.profile(uuid4().hex)


def lines(conversation: Conversation) -> list[Line]:
    """What the log says, in the form of `said`."""

    def whole(part: Part) -> Part:
        """With the bytes of an image, which the log keeps apart."""
        is_kept = isinstance(part, Image) and part.hash
        return Image(data=conversation.blob(part.hash)) if is_kept else part

    return told(
        (message.role, tuple(map(whole, message.parts)), message.api_group)
        for message in conversation.messages()
    )


def _newest(conversation: Conversation) -> list[Any]:
    """The messages in the place of which no other stands."""
    messages = list(conversation.messages())
    replaced = {message.replaces for message in messages}
    return [(m.role, m.parts, m.created_at) for m in messages if m.seq not in replaced]


@pytest.mark.parametrize("form", SPOKEN, ids=lambda form: form.name)
@settings(max_examples=15)
@given(data=st.data())
def test_the_log_says_what_was_said(form: Form, data: st.DataObject, store: Store) -> None:
    talk, profile = data.draw(form.talks()), fresh(store)
    with tempfile.TemporaryDirectory() as folder:
        path = form.write(talk, Path(folder))
        import_into(profile, path)
        (conversation,) = conversations(profile)
        assert form.says is not None
        assert lines(conversation) == form.says(talk)
        before = shown(profile)
        assert import_into(profile, path).totals.messages == 0
        assert shown(profile) == before


@pytest.mark.parametrize("form", GROWING, ids=lambda form: form.name)
@settings(max_examples=15)
@given(data=st.data())
def test_a_file_that_is_cut_at_any_record_grows(
    form: Form, data: st.DataObject, store: Store
) -> None:
    talk, whole, grown = data.draw(form.talks()), fresh(store), fresh(store)
    with tempfile.TemporaryDirectory() as folder:
        path = form.write(talk, Path(folder))
        rows = path.read_bytes().splitlines(keepends=True)
        cut = rows[: data.draw(st.integers(1, len(rows)))]
        for profile, held in (whole, rows), (grown, cut), (grown, rows):
            path.write_bytes(b"".join(held))
            os.utime(path, (WRITTEN, WRITTEN))
            import_into(profile, path)
    for one, other in zip(conversations(whole), conversations(grown), strict=True):
        assert other.context() == one.context()
        assert _newest(other) == _newest(one)
    assert form.format in REWRITTEN or shown(grown) == shown(whole)
