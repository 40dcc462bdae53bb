"""Limits on every size that an outsider chooses."""

from __future__ import annotations

from msgspec import Struct

from clew.errors import InputError, TooLarge


class Limits(Struct, frozen=True, kw_only=True):
    """Bytes or counts; a value over one is refused with TooLarge, nothing written."""

    message: int = 16 * 1024 * 1024
    """Bytes of one message's parts as JSON, without images and files."""
    blob: int = 64 * 1024 * 1024
    """Bytes of one image or file."""
    batch: int = 1000
    """Messages in one append."""
    label: int = 1000
    """Characters of a title, author, model name, folder, todo or end reason."""
    key: int = 1024
    """Characters of a key, id or binding."""
    meta: int = 64 * 1024
    """Bytes of a meta, settings or receipt as JSON."""
    prompt: int = 4 * 1024 * 1024
    """Bytes of a system prompt or of a tool set's schemas."""
    inbox: int = 1000
    """Messages waiting in one conversation."""
    page: int = 1000
    """Items of one page."""
    spool: int = 16 * 1024 * 1024
    """Bytes reserved for messages that the store cannot take; 0: such messages are refused."""

    def check_page(self, limit: int) -> None:
        """Refuse a page size that is none or over the limit."""
        if limit < 1:
            raise InputError(f"limit is {limit}; ask for at least one")
        if limit > self.page:
            raise TooLarge("page (items)", limit, self.page)
