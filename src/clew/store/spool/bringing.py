"""Brings a spool in, record by record, as far as the store takes them."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

from clew.errors import (
    Busy,
    ClewError,
    Corrupt,
    InputError,
    NotFound,
    Quarantined,
    Refused,
    StoreError,
    Unavailable,
)
from clew.store.backend import Backend
from clew.store.codec import DictionaryGone
from clew.store.kit import Kit
from clew.store.spool.record import HELD, Entry, State
from clew.store.spool.replay import Bring, BringAside, BringDelivery, Brought, groups
from clew.store.spool.spool import Spool

WAIT = 1.0
"""Seconds that a write waits for another thread that brings the same spool in."""
PAUSE = 2.0
"""Seconds after a server did not answer in which messages go to the spool at once: each that asked
first would wait for it as long as this one did."""


class Report(NamedTuple):
    """What came of it. `stopped`: by what the rest was left where it is."""

    brought: tuple[Brought, ...] = ()
    stopped: ClewError | None = None

    @property
    def recovered(self) -> tuple[Brought, ...]:
        """What went to conversations of its own."""
        return tuple(each for each in self.brought if each.recovered)


def bring_in(
    backend: Backend, kit: Kit, spool: Spool, *, held: bool = False, wait: float = WAIT
) -> Report:
    """Bring in all that waits, in order; `held`: also what waits for a person. Never raises for
    what the store or the spool cannot do: `stopped` says it."""
    if not spool.bringing.acquire(timeout=wait):
        return Report(stopped=Busy("another thread brings the spool in"))
    try:
        if not held and monotonic() < spool.away_until:
            return Report(stopped=Unavailable("the server did not answer a moment ago"))
        return _all(backend, kit, spool, held)
    except OSError as error:
        return Report(stopped=StoreError(f"the spool {spool.path} cannot be read: {error}"))
    finally:
        spool.bringing.release()


def _all(backend: Backend, kit: Kit, spool: Spool, held: bool) -> Report:
    wanted: frozenset[State] = frozenset({"pending", *(HELD if held else ())})
    entries = [e for e in spool.contents().entries if e.state in wanted]
    found: list[Brought] = []
    stopped: ClewError | None = None
    passed: set[str] = set()
    for group in groups(entries):
        name = _name(group[0])
        if name in passed:
            continue
        try:
            found += _group(backend, kit, spool, group, held)
        except Quarantined as error:
            stopped = error
            break
        except Corrupt as error:  # maybe of this conversation only: the others do not wait for it
            stopped = error
            passed.add(name)
        except StoreError as error:
            stopped = error
            if isinstance(error, DictionaryGone):
                kit.codec.learn()  # the next write packs with the new one
            if isinstance(error, Unavailable):
                spool.away_until = monotonic() + PAUSE
            break
    _settle(spool, found)
    return Report(tuple(found), stopped)


def _name(entry: Entry) -> str:
    assert entry.record is not None
    return entry.record.conversation


def _settle(spool: Spool, found: Sequence[Brought]) -> None:
    states: set[State] = {each.state for each in found}
    for state in states:
        spool.settle([each.entry for each in found if each.state == state], state)


def _group(
    backend: Backend, kit: Kit, spool: Spool, entries: Sequence[Entry], held: bool
) -> list[Brought]:
    """Bring in neighbours. When one of them is refused, each alone; that one beside."""
    store = backend.meta.store_id
    record = entries[0].record
    try:
        if record is not None and record.delivery is not None:
            delivery = BringDelivery(kit, spool, store, entries[0], anywhere=held)
            return backend.write(delivery)
        return backend.write(Bring(kit, spool, store, entries, anywhere=held))
    except (InputError, Refused, NotFound) as error:
        if len(entries) > 1:
            return [b for e in entries for b in _group(backend, kit, spool, [e], held)]
        return _beside(backend, kit, spool, entries[0], str(error))


def _beside(backend: Backend, kit: Kit, spool: Spool, entry: Entry, why: str) -> list[Brought]:
    store, record = backend.meta.store_id, entry.record
    try:
        if record is not None and record.delivery is not None:
            return backend.write(BringAside(kit, spool, entry, why))
        return backend.write(Bring(kit, spool, store, [entry], anywhere=True, aside=why))
    except (InputError, Refused, NotFound) as error:
        return [Brought(entry, "refused", None, str(error))]
