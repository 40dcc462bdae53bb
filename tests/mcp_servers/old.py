"""A server of tools as they were before the SDK: one loop over stdin, knowing `initialize` only.

`python old.py [HABIT...]`. Habits: `garbage` prints what is no message, and bytes that are no text;
`mute` never answers; `quits` says why on stderr and ends; `lingers` never answers a call;
`chatters` fills stderr; `hides`, `refuses` and `lies` do so when they are asked for tools. What
comes is written into the file that OLD_LOG names.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

TOOLS = [{"name": "echo", "inputSchema": {"type": "object"}}]


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def garbage() -> None:
    sys.stdout.buffer.write(b'Loading model... \xff\xfe 100%\n\n{"jsonrpc": \n[]\n')
    sys.stdout.flush()


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-03-26", "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "old", "version": "0"},
        }  # fmt: skip
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}
    return None


def serve(habits: list[str]) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method", ""), message.get("id")
        if path := os.environ.get("OLD_LOG"):
            with open(path, "a", encoding="utf-8") as log:
                log.write(f"{method} {os.getpid()}\n")
        if "garbage" in habits:
            garbage()
        if "mute" in habits or number is None or ("lingers" in habits and method == "tools/call"):
            continue
        if method == "tools/list" and "hides" in habits:
            continue
        if method == "tools/list" and "refuses" in habits:
            say({"id": number, "error": {"code": -32603, "message": "not today"}})
            continue
        if method == "tools/list" and "lies" in habits:
            say({"id": number, "result": {"tools": [{"name": 7}]}})
            continue
        result = answer(method, message.get("params") or {})
        if result is None:
            say({"id": number, "error": {"code": -32601, "message": f"no {method}"}})
            continue
        if method == "tools/call":
            TOOLS.append({"name": f"echo{len(TOOLS)}", "inputSchema": {"type": "object"}})
            say({"method": "notifications/tools/list_changed"})
        say({"id": number, "result": result})


if __name__ == "__main__":
    if "quits" in sys.argv:
        sys.exit(f"\x1b[31mno licence\x1b[0m for {os.environ.get('OLD_KEY', 'nobody')}")
    if "chatters" in sys.argv:
        sys.stderr.write("a line of a log\n" * 200_000)
    serve(sys.argv[1:])
