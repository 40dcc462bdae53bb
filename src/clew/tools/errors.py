"""What can go wrong with where tools come from."""

from __future__ import annotations

from typing import ClassVar

from clew.errors import ClewError


class ToolsUnavailable(ClewError):
    """A source of tools cannot be reached. `origin`: its name. The text may be shown: it holds no
    secret of the configuration."""

    retryable: ClassVar[bool] = True

    def __init__(self, message: str, *, origin: str) -> None:
        super().__init__(message)
        self.origin = origin


class ToolFailed(ClewError):
    """A tool has failed, its source has not. The text is for the model."""
