"""Whether a call may run: `[tools.policy]`, then what a person allowed, then the tool's default."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from clew.tools.api import Verdict
from clew.tools.names import prefix, tool_name


def decide(
    policy: Mapping[str, Verdict], name: str, origin: str | None, default: Verdict,
    allowed: Collection[str] = (),
) -> Verdict:  # fmt: skip
    """What the policy says of a call of `name`, a tool of `origin` (None: nobody knows whose).

    The exact name comes first, as a model calls it (`SERVER__TOOL`) or as the server does
    (`SERVER.TOOL`); then `SERVER.*` or `SERVER__*`; then `default`. `allowed`: names that a person
    allowed for good in this conversation; they answer an "ask", never a "deny".
    """
    for key in _keys(policy, name, origin):
        if key in policy:
            said = policy[key]
            break
    else:
        said = default
    return "allow" if said == "ask" and name in allowed else said


def _keys(policy: Mapping[str, Verdict], name: str, origin: str | None) -> Iterator[str]:
    """The keys that mean a tool, the most exact first."""
    yield name
    if origin is None:
        return
    dotted = f"{origin}."
    for key in policy:
        if key.startswith(dotted) and tool_name(origin, key.removeprefix(dotted)) == name:
            yield key
    yield from (f"{origin}.*", f"{origin}__*", f"{prefix(origin)}*")
