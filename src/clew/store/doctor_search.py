"""The part of a diagnosis that looks into the search file."""

from __future__ import annotations

from clew.store.findings import Ask, Finding, counted, size_text
from clew.store.search.connection import FORMAT
from clew.store.search.index import Mark
from clew.store.search.index import Store as Log


def look(ask: Ask, log: Log, size: int) -> Finding:
    """Whether it belongs to this log, and how far it has come. Raises StoreError."""
    found = ask("search_format")[0][0]
    if found != FORMAT:
        return _rebuilt(f"it has format {found}, this clew writes {FORMAT}")
    mark = Mark(*ask("search_mark")[0])
    if not mark.fits(log):
        return _rebuilt("it belongs to another log, or to a later state of this one")
    behind = mark.behind(log)
    state = f"{counted(behind, 'message')} not indexed yet" if behind else "all is indexed"
    return Finding("ok", "search", f"{state} ({size_text(size)})")


def _rebuilt(why: str) -> Finding:
    what = f"the search file is of no use: {why}. The next search rebuilds it"
    return Finding("ok", "search", what)
