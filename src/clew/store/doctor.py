"""What is wrong with a store and what to do, found out without writing anything.

A finding is a fact with a remedy, for a person who knows nothing of the engine. Each engine has a
doctor of its own; what a store's rows tell is the same for all (doctor_rows.py).
"""

from __future__ import annotations

import os
from pathlib import Path

from clew.clock import Clock
from clew.errors import StoreError
from clew.store import doctor_sqlite
from clew.store.address import Address
from clew.store.engines import for_server
from clew.store.findings import Finding


def diagnose(
    place: Address | str | os.PathLike[str], *, clock: Clock | None = None
) -> list[Finding]:
    """All findings about the store at a place, good ones too, in the order of their subjects.

    Reads every page of a file once (a gigabyte takes some seconds). Never raises for what is wrong
    with the store: that is a finding. `clock` is for files; a server has its own.
    """
    if not isinstance(place, Address):
        return doctor_sqlite.diagnose(Path(place).expanduser(), clock)
    try:
        doctor = for_server("clew.store.doctor_postgres")
    except StoreError as error:
        remedy = "pip install 'clew[postgres]'"
        return [Finding("error", "psycopg", str(error), remedy, code="psycopg.missing")]
    return list(doctor.diagnose(place))


__all__ = ["Finding", "diagnose"]
