"""Search over the log, in a file of its own that may be deleted at any time."""

from clew.store.search.engine import Search

__all__ = ["Search"]
