"""conpact: its side constraints put into histories of ours, its scoring, and a judge of our own.

The kit asks a model whether the constraint is still there. Here a server in this process answers,
by one rule: every sentence of the constraint stands in the context almost word for word.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import wire
from conpact.compactors import RecentN
from conpact.evaluate import Endpoint, evaluate
from conpact.generate import build_instances

_ASKED = re.compile(r"\[Injected SSSC\]\s*(.*?)\s*\[Compacted Context\](.*)", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?;]+")
_WORD = re.compile(r"[a-z0-9']+")
_SHARE = 0.9
"""Of the words of a sentence that must stand close together."""


def says(constraint: str, context: str) -> bool:
    """Whether each sentence of the constraint is in the context."""
    said = _WORD.findall(context.lower())
    sentences = [_WORD.findall(s) for s in _SENTENCE.findall(constraint.lower())]
    return all(_stands(words, said) for words in sentences if words)


def _stands(words: list[str], said: list[str]) -> bool:
    """Whether nearly all words stand in one stretch hardly longer than they are."""
    wanted = set(words)
    length = len(words) + 3
    for at, word in enumerate(said):
        if word in wanted:
            near = wanted.intersection(said[at : at + length])
            if len(near) >= _SHARE * len(wanted):
                return True
    return False


class _Judge(BaseHTTPRequestHandler):
    """Chat Completions of a judge that never guesses."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = _ASKED.search("\n".join(message["content"] for message in asked["messages"]))
        verdict = "YES" if found and says(found[1], found[2]) else "NO"
        message = {"role": "assistant", "content": verdict}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        fields = {"id": "1", "object": "chat.completion", "created": 0, "model": "judge"}
        body = json.dumps({**fields, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody reads it."""


def _ours(messages: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"role": "user", "content": wire.ask(messages=messages)}]


def retention(histories: list[dict[str, Any]], positions: dict[str, int]) -> list[dict[str, Any]]:
    """Share of the 15 constraints kept, by position, compactor and source of the history.

    `positions`: how often the constraint is said at each.
    """
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Judge)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    judge = Endpoint("judge", f"http://127.0.0.1:{server.server_port}/v1", "none")
    longest = max(sum(history["message_tokens"]) for history in histories)
    found: list[dict[str, Any]] = []
    for position, times in positions.items():
        instances = build_instances(histories, length=longest, position=position, repeat=times)
        for name, compactor in (("clew", _ours), ("keep the last 5", RecentN(5))):
            with tempfile.TemporaryDirectory() as folder:
                rows = evaluate(
                    instances, compactor, out_dir=folder, probe=judge, judge=judge,
                    retention_only=True, compact_workers=1, workers=4,
                )  # fmt: skip
            found += [{"position": position, "compactor": name, **row} for row in rows]
    server.shutdown()
    return found


if __name__ == "__main__":
    wire.serve({"retention": retention})
