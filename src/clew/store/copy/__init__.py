"""Copying a store to another place, on whatever engines, and moving it there."""

from clew.store.copy.report import CopyReport, Progress
from clew.store.copy.run import copy

__all__ = ["CopyReport", "Progress", "copy"]
