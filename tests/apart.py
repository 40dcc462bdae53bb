"""Stores of one place that share nothing, as those of two hosts do.

Two openings of a place in one process have one engine (clew.store.registry). A test of what two
hosts, or two processes, do to each other opens them here: what keeps them apart, or in order, is
then the database alone.
"""

from __future__ import annotations

from pathlib import Path

import clew
from clew.clock import Clock
from clew.ids import Ids
from clew.store.opening import open_parts


def apart(place: str | Path, *, clock: Clock | None = None, ids: Ids | None = None) -> clew.Store:
    """A store with an engine, a pool or writer, and a codec of its own."""
    return clew.Store(open_parts(place, clock, ids, None, share=False))
