"""desk over HTTP as it was before 2026, with a session: `python sessions.py PORT`."""

from __future__ import annotations

import json
import sys
from typing import Any

import uvicorn
from desk import note, server


class Before2026:
    """An application that does not know `server/discover`."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._inner(scope, receive, send)
            return
        messages = [await receive()]
        while messages[-1].get("more_body"):
            messages.append(await receive())
        body = b"".join(message.get("body", b"") for message in messages)
        if json.loads(body).get("method") == "server/discover":
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"Bad Request"})
            return

        async def again() -> Any:
            return messages.pop(0) if messages else await receive()

        await self._inner(scope, again, send)


if __name__ == "__main__":
    note("start")
    application = Before2026(server.streamable_http_app())
    uvicorn.run(application, port=int(sys.argv[1]), log_level="error")
