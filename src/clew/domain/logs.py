"""Logs without keys: a filter for handlers of the standard library's logging.

clew itself logs nothing; what it uses does (HTTP clients, drivers, asyncio), and some of that names
URLs, headers and errors. A program that sets up logging puts this on its handlers:

    handler.addFilter(Redacting(Redaction(Rules(secrets=(key,)))))
"""

from __future__ import annotations

import logging

from clew.domain.redaction import Redaction, Rules


class Redacting(logging.Filter):
    """Lets every record through, redacted: its text, its traceback, its stack."""

    def __init__(self, redaction: Redaction | None = None) -> None:
        super().__init__()
        self._redaction = redaction or Redaction(Rules())

    def filter(self, record: logging.LogRecord) -> bool:
        """A record without keys. One whose text cannot be made says only where it came from."""
        try:
            text = record.getMessage()
        except (TypeError, ValueError, KeyError):
            text = f"a record of {record.name} that cannot be shown"
        record.msg, record.args = self._redaction(text), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._redaction(record.exc_text)
        if record.stack_info:
            record.stack_info = self._redaction(record.stack_info)
        return True
