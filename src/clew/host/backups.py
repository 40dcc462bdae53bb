"""Scheduled backups by a host: side work in a thread of its own.

No turn waits for it. The thread is a daemon: a host that closes asks it to stop, waits a moment,
and leaves; what was half made then goes with the next run (store/scheduled.py). A worker of the
loop's pool would be waited for by the interpreter, however long the copy takes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from clew.errors import ClewError
from clew.store.aio.handles import blocking_database
from clew.store.aio.profile import AsyncProfile
from clew.store.scheduled import Made, Schedule, file_of, run


async def back_up(
    profile: AsyncProfile, schedule: Schedule, going: Callable[[], bool]
) -> Made | None:
    """Make and test a point of the profile's store, if one is due. A store on a server is left to
    its own tools. `going` is asked in the thread."""
    db = blocking_database(profile)
    if file_of(db) is None:
        return None
    return await _apart(lambda: run(db, schedule, going=going))


async def _apart(work: Callable[[], Made | None]) -> Made | None:
    """The outcome of a work that nobody is held up by."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Made | None] = loop.create_future()

    def settle(made: Made | None, error: BaseException | None) -> None:
        if outcome.done():
            return  # nobody waits any more
        if error is None:
            outcome.set_result(made)
        else:
            outcome.set_exception(error)

    def tell(made: Made | None, error: BaseException | None = None) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, made, error)

    def body() -> None:
        try:
            tell(work())
        except (ClewError, OSError) as error:
            tell(None, error)
        except BaseException as error:
            tell(None, error)
            raise

    threading.Thread(target=body, name="clew-backup", daemon=True).start()
    return await outcome
