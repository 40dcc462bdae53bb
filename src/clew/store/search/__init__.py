"""Search over the log. What it needs beside the log may be thrown away at any time."""

from clew.store.search.engine import Engine
from clew.store.search.handle import Search
from clew.store.search.places import in_file, in_tables

__all__ = ["Engine", "Search", "in_file", "in_tables"]
