"""What an erasure does with messages that wait beside the store: those of it are taken out, and
zeros are written over them. What could be brought in was, before the first step."""

from __future__ import annotations

from collections.abc import Iterator

from clew.domain.erasure import ErasurePlan, names_person
from clew.store.database import Database
from clew.store.erasure import Gathered
from clew.store.needles import Needles
from clew.store.spool.record import Record


def take_out(db: Database, profile: str, plan: ErasurePlan, gathered: Gathered) -> Iterator[str]:
    """Take out what is of the plan; gives what is left of the person, in words."""
    spool = db.spool
    if spool is None:
        return
    wholes = {target.conversation for target in plan.targets if target.whole}
    records = [entry.record for entry in spool.contents().entries if entry.record is not None]
    ours = [record for record in records if record.profile == profile]
    for record in ours:
        if _is_of(record, wholes, plan.person):
            for message in record.messages:
                gathered.text(message.key, message.author)
                gathered.packed(db.kit, message.parts)
                gathered.json(message.meta)
        elif any(message.author == plan.person for message in record.messages if plan.person):
            yield "the spool holds a batch of several people: bring it in (clew spool), erase again"
    spool.remove(lambda record: record.profile == profile and _is_of(record, wholes, plan.person))


def _is_of(record: Record, wholes: set[str], person: str | None) -> bool:
    """Whether all of a record goes."""
    if record.conversation in wholes:
        return True
    if person is None:
        return False
    keys = [record.conversation]
    if record.delivery is not None:
        keys += [record.delivery.route, record.delivery.account, record.delivery.key]
    alone = bool(record.messages) and all(m.author == person for m in record.messages)
    return alone or any(names_person(key, person) for key in keys)


def traces(db: Database, needles: Needles) -> Iterator[str]:
    """Records of the spool that hold a piece, each once."""
    if db.spool is not None:
        for entry in db.spool.contents().entries:
            if entry.record is not None and any(
                needles.are_in(form)
                for message in entry.record.messages
                for form in (message.parts, *(data for _, data in message.blobs))
            ):
                yield f"record {entry.number} of the spool"
