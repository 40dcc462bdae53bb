"""Comparing what two stores answer: equal, but for the uids that each minted for itself.

A uid of one store stands for one uid of the other, for ever: the first time two answers have
different uids in the same place they become twins, from then on they must meet again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from clew import Message
from clew.errors import ClewError

UIDS = frozenset({"uid", "uids", "retry_of", "affinity", "attribution"})
"""Where a uid stands: names of fields, or of keys in meta."""

OWN = frozenset({"key", "seq", "holder", "name"})
"""Facts of an error that may differ: which of several faults of a batch is told first, and names
that hold a uid."""


class Twins:
    """Compares answers of the reference with those of the real store."""

    def __init__(self) -> None:
        self._real: dict[str, str] = {}
        self._reference: dict[str, str] = {}

    def same(self, expected: Any, actual: Any, where: str = "answer") -> None:
        """AssertionError where the two differ."""
        if expected is actual:
            return
        if hasattr(expected, "log") and hasattr(actual, "log"):  # two handles
            expected, actual = expected.id, actual.id
        elif hasattr(expected, "right") and hasattr(actual, "right"):
            for name in ("turn", "right", "appended", "call"):
                self.same(getattr(expected, name), getattr(actual, name), f"{where}.{name}")
            return
        if isinstance(expected, Message) and isinstance(actual, Message):
            self._mappings(_plain(expected), _plain(actual), where)
        elif isinstance(expected, Struct) and type(expected) is type(actual):
            self._mappings(_fields(expected), _fields(actual), where)
        elif isinstance(expected, Mapping) and isinstance(actual, Mapping):
            self._mappings(expected, actual, where)
        elif _is_list(expected) and _is_list(actual):
            assert len(expected) == len(actual), f"{where}: {expected!r} but {actual!r}"
            for at, (one, other) in enumerate(zip(expected, actual, strict=True)):
                self.same(one, other, f"{where}[{at}]")
        else:
            assert expected == actual, f"{where}: {expected!r} but {actual!r}"

    def _mappings(self, one: Mapping[str, Any], other: Mapping[str, Any], where: str) -> None:
        assert one.keys() == other.keys(), f"{where}: {one!r} but {other!r}"
        for name, value in one.items():
            there = f"{where}.{name}"
            if name in UIDS and value is not None:
                self._uids(value, other[name], there)
            else:
                self.same(value, other[name], there)

    def _uids(self, one: Any, other: Any, where: str) -> None:
        if not isinstance(one, str):
            assert len(one) == len(other), f"{where}: {one!r} but {other!r}"
            for a, b in zip(one, other, strict=True):
                self._uids(a, b, where)
            return
        assert self._real.setdefault(one, other) == other, f"{where}: uid {one} was another's"
        assert self._reference.setdefault(other, one) == one, f"{where}: uid {other} was another's"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _fields(value: Struct) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__struct_fields__}


def _plain(message: Message) -> dict[str, Any]:
    return {name: getattr(message, name) for name in Message.ROW}


def outcome(call: Callable[[], Any]) -> Any:
    """The answer, or the error as its type and its facts."""
    try:
        return call()
    except ClewError as error:
        facts = {k: v for k, v in vars(error).items() if k not in OWN}
        return type(error).__name__, facts


OBSERVED: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("info", lambda conv: conv.info()),
    ("messages", lambda conv: list(conv.messages())),
    ("log", lambda conv: list(conv.messages(hidden=True))),
    ("newest", lambda conv: conv.log(order="newest", limit=3).items),
    ("context", lambda conv: conv.context_inputs()),
    ("rendered", lambda conv: conv.context("m1")),
    ("cuts", lambda conv: conv.cuts()),
    ("compactions", lambda conv: conv.compactions()),
    ("attempts", lambda conv: conv.attempts()),
    ("turns", lambda conv: conv.turns()),
    ("calls", lambda conv: conv.calls()),
    ("inbox", lambda conv: conv.inbox()),
    ("approvals", lambda conv: conv.approvals()),
    ("allowed tools", lambda conv: conv.allowed_tools()),
    ("aliases", lambda conv: conv.aliases()),
    ("children", lambda conv: conv.children()),
)
"""All that can be seen of a conversation."""
