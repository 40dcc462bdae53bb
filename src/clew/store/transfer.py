"""Whole conversations of a profile, out and in, for exporters and the importer of their files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clew.errors import InputError, Refused
from clew.store.backend import Backend
from clew.store.database import Database
from clew.store.kit import Kit
from clew.store.transfer_dump import Dump, Dumped, Emit
from clew.store.transfer_lines import Facts
from clew.store.transfer_order import everything, family
from clew.store.transfer_restore import Restored, Restoring
from clew.store.transfer_step import Apply, Together


class Transfer:
    """Of one profile. Its methods, and those of what it gives, wait for the store."""

    def __init__(self, backend: Backend, kit: Kit, profile: str) -> None:
        self._db = Database(backend, kit)
        self.profile = profile

    def family(
        self, *ids: str, branches: bool = True, delegates: bool = True
    ) -> tuple[str, ...]:  # fmt: skip
        """Ids of these conversations (of all, when none is given) and of those that belong to them,
        each behind the one it comes from: the order in which they can be brought. NotFound."""
        if not ids:
            return tuple(self._db.read(lambda tx: everything(tx, self.profile)))
        return tuple(self._db.read(lambda tx: family(tx, self.profile, ids, branches, delegates)))

    def finish(self, small: Iterable[Restoring]) -> list[Restored | Refused | InputError]:
        """Write complete conversations that are small in one transaction; each that cannot be
        brought, by its error, leaves the others alone."""
        listed = list(small)
        units = [restoring.unit() for restoring in listed]
        try:
            written = self._db.write(Together(units))
        except (Refused, InputError):
            return [self._one(*pair) for pair in zip(listed, units, strict=True)]
        return [r.written(outcome) for r, outcome in zip(listed, written, strict=True)]

    def _one(self, restoring: Restoring, unit: Apply) -> Restored | Refused | InputError:
        try:
            return restoring.written(self._db.write(Together([unit]))[0])
        except (Refused, InputError) as error:
            return error

    def dump(self, id: str, emit: Emit) -> Dumped:
        """Give all of a conversation to `emit`, one typed value after another, in one snapshot;
        memory stays bounded. NotFound."""
        return self._db.read(Dump(self._db.kit, self.profile, id, emit))

    def restoring(
        self, facts: Facts, *, dry: bool = False, planned: Mapping[str, int] | None = None
    ) -> Restoring:  # fmt: skip
        """Begin to bring a conversation. Refused or InputError where that cannot be."""
        return Restoring(self._db, self.profile, facts, dry, planned or {})


__all__ = ["Dumped", "Restored", "Restoring", "Transfer"]
