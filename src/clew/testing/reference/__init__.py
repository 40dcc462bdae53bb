"""ReferenceStore: a store of plain lists and dicts, for tests of code that uses clew.

The rules of clew restated without a database, slow and small: no file, no threads, no search, no
following. clew's own contract tests hold the real store against it.

    store = ReferenceStore(clock=FakeClock())
    conv = store.profile("me").conversation("support-42")
"""

from clew.testing.reference.conversation import ReferenceConversation
from clew.testing.reference.reader import ReferenceReader
from clew.testing.reference.store import ReferenceProfile, ReferenceStore
from clew.testing.reference.turn import ReferenceTurn

__all__ = [
    "ReferenceConversation", "ReferenceProfile", "ReferenceReader", "ReferenceStore",
    "ReferenceTurn",
]  # fmt: skip
