"""The retention policy that a configuration says."""

from __future__ import annotations

from clew.config.ages import micros
from clew.config.values import RetentionConfig
from clew.domain.retention import Policy, Rule
from clew.errors import InputError


def policy_of(config: RetentionConfig) -> Policy:
    """Rules by source first, then by whose it is. InputError for an age that is none, which a
    configuration that was read does not have."""
    rules = [
        *(Rule(source=source, age=_age(age)) for source, age in sorted(config.sources.items())),
        Rule(who="automation", age=_age(config.automation)),
        Rule(who="people", age=_age(config.people)),
        Rule(who="imports", age=_age(config.imports)),
    ]
    window = _age(config.bin)
    if window is None:
        raise InputError("the bin's window is an age, such as 30d")
    return Policy(rules=tuple(rules), bin=window)


def _age(text: str) -> int | None:
    try:
        return micros(text)
    except ValueError:
        raise InputError(f"{text!r} is no age; give 90d, 12w, 24h, 2y or keep") from None
