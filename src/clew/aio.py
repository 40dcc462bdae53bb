"""clew for asyncio: the same store, the same methods, awaited.

import clew.aio

async with clew.aio.open("agent.db") as store:
    conv = await store.profile("me").conversation("support-42")
    await conv.add({"role": "user", "content": "hi"})
    reply = await my_model(await conv.context("my-model"))
    await conv.add(reply)
"""

from clew.compaction.aio import AsyncCompactor
from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.opening import Opening
from clew.store.aio.opening import open_store as open
from clew.store.aio.profile import AsyncProfile
from clew.store.aio.reader import AsyncConversationReader
from clew.store.aio.store import AsyncStore
from clew.store.aio.turn import AsyncTurn

__all__ = [
    "AsyncCompactor",
    "AsyncConversation",
    "AsyncConversationReader",
    "AsyncProfile",
    "AsyncStore",
    "AsyncTurn",
    "Opening",
    "open",
]
