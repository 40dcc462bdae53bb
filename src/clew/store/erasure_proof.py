"""The proof of an erasure: looking for what was erased, everywhere.

Every value of every row is decoded and looked through, the search index is asked for the words, and
the files are read byte by byte for the texts and for the compressed bytes as they were stored. A
piece in a file that a row which stays holds as well says nothing. A row that says much of the same
is a trace: somebody quotes it.
"""

from __future__ import annotations

from clew.domain.erasure import Proof, Trace
from clew.store import erasure_spool
from clew.store.database import Database
from clew.store.erasure import Gathered
from clew.store.needles import SIXTEEN, Needles
from clew.store.search import Search
from clew.store.values import FileTrace

QUOTE = 32
"""Bytes in a row that make a quotation: what is shorter, many people say."""
MOST = 50
"""Traces that are told."""
_OWN = "meta"
"""Where an erasure that is under way is written down."""


def prove(db: Database, search: Search, gathered: Gathered) -> Proof:
    """Look everywhere. Reads all of the store: about a minute for a gigabyte."""
    found: list[FileTrace] = []
    size = 0
    everything = gathered.texts.with_more(gathered.frames)
    for one in db.backend.file_traces(everything):
        if isinstance(one, int):
            size += one
        else:
            found.append(one)
    pieces = Needles.of({trace.piece for trace in found})
    traces: list[Trace] = []
    values = 0
    for value in db.backend.values():
        values += 1
        for form in value.forms(db.kit):
            pieces.discard_in(form)
            if value.table not in (_OWN, "dictionary") and _quotes(gathered.texts, form):
                traces.append(Trace("row", value.place))
                break
    ids, words = sorted(gathered.ids), sorted(gathered.words)
    traces += [Trace("search", place) for place in search.traces(ids, words)]
    traces += [Trace("spool", place) for place in erasure_spool.traces(db, everything)]
    left = {trace.file + f" at byte {trace.at:,}" for trace in found if trace.piece in pieces}
    traces += [Trace("file", place) for place in sorted(left)]
    return Proof(fragments=len(everything), values=values, bytes=size, traces=tuple(traces[:MOST]),
                 missed=gathered.texts.missed)  # fmt: skip


def _quotes(needles: Needles, data: bytes) -> bool:
    """Whether so many bytes in a row are of what was erased."""
    places = sorted({at for at, _ in needles.find(data)})
    run = 0
    for before, at in zip([-2, *places], places, strict=False):
        run = run + 1 if at == before + 1 else 1
        if run > QUOTE - SIXTEEN:
            return True
    return False
