"""The named points of a turn: where a process may die. A test kills it at each, and asserts that
this is the set of them."""

from __future__ import annotations

from typing import Literal, get_args

Point = Literal[
    "received",  # before anything is durable
    "begun",  # T1: the turn, its messages, the planned call
    "context",  # the context is built
    "asked",  # the request is on its way
    "streaming",  # a piece of the answer has come
    "answered",  # the answer is whole, not yet stored
    "recorded",  # T2: the answer and its calls are stored
    "waiting",  # T2: the turn waits for a person
    "tool",  # a tool is running
    "ran",  # a tool has answered, not yet stored
    "results",  # T2: the results are stored, the next call is planned
    "finished",  # T2: the turn is closed, its deliveries stand in the outbox
    "compacting",  # a compaction is about to begin
    "compacted",  # T3
    "publishing",  # a delivery was claimed, not yet sent
    "sent",  # it was sent, not yet noted
    "published",  # T4
]
POINTS: tuple[str, ...] = get_args(Point)
