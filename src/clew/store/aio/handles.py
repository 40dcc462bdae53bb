"""From a handle for asyncio to the same one for code that blocks."""

from __future__ import annotations

from clew.store.aio.conversation import AsyncConversation
from clew.store.aio.profile import AsyncProfile
from clew.store.conversation import Conversation
from clew.store.database import Database
from clew.store.profile import Profile


def blocking(conv: AsyncConversation) -> Conversation:
    """The same conversation, to be used in a thread. Both may be used at once."""
    db, no = conv._db.blocking, conv._no  # pyright: ignore[reportPrivateUsage]  # the pair of it
    return Conversation(db, no, conv.id, conv.profile)


def blocking_profile(profile: AsyncProfile) -> Profile:
    """The same profile, to be used in a thread."""
    db, search = profile._db.blocking, profile._search  # pyright: ignore[reportPrivateUsage]
    return Profile(db, search, profile.name)


def blocking_database(profile: AsyncProfile) -> Database:
    """What a profile works on, to be used in a thread."""
    return profile._db.blocking  # pyright: ignore[reportPrivateUsage]  # as above
