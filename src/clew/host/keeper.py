"""Keeps the right to run while a turn does: renews it, stores what was streamed, and notices when
it is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from clew.clock import SECOND
from clew.errors import ClewError, NotFound, RightLost, TooLarge
from clew.host.running import Running

BEAT = 1.0
"""Seconds between two looks: what is streamed is stored so often, and a stop by another process is
noticed within so long."""


@asynccontextmanager
async def kept(run: Running) -> AsyncGenerator[None]:
    """Keep the right of a running turn. When somebody else has taken it, or ended the turn, the
    turn is stopped here (`lost`): its writes would be refused anyway, but the model goes on."""
    keeper = asyncio.ensure_future(_keep(run))
    try:
        yield
    finally:
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper


async def _keep(run: Running) -> None:
    saved, renewed, full = 0, time.monotonic(), False
    third = run.turn.right.ttl / SECOND / 3
    while True:
        await asyncio.sleep(BEAT)
        call, pieces = run.call, len(run.pieces)
        try:
            if call is not None and pieces and pieces != saved and not full:
                saved = pieces
                await run.turn.save_partial(call, run.said)
                renewed = time.monotonic()
            elif time.monotonic() - renewed >= third:
                await run.turn.renew()
                renewed = time.monotonic()
            elif (await run.conv.info()).fence != run.turn.right.fence:
                raise RightLost(run.conv.id, run.turn.right.fence)
        except (RightLost, NotFound):
            run.lost = True
            run.stop.set()
            return
        except TooLarge:
            full = True  # no more of it can be kept, and the right has to be
        except ClewError:
            continue  # a busy store is no reason to stop; whether the right is lost it will say
