"""Whether a text is, or holds, a key that should not stand in a file.

By the form that providers give to their keys, by a password in a URL, and by the name of what holds
it. A text that refers to the environment, ${NAME}, is none.
"""

from __future__ import annotations

import re

FORMS = (
    r"-----BEGIN [A-Z ]*PRIVATE KEY(?:-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)|)"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|\b(?:sk|pk|rk)-(?=[\w-]*\d)[\w-]{16,}|\bsk-(?:ant|or|proj)-[\w-]{8,}|\bgh[pousr]_\w{20,}"
    r"|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxai-\w{16,}|\bgsk_\w{16,}|\bAIza[\w-]{20,}"
    r"|\bhf_\w{20,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bxox[a-z]-[\w-]{10,}|\br8_\w{16,}"
    r"|\bpplx-\w{16,}|\bnvapi-[\w-]{16,}"
    r"|(?P<scheme>(?i:\b(?:bearer|basic)\s+))(?=\S*\d)[\w.~+/=-]{12,}"
    r"|(?P<field>[?&](?i:[\w-]*(?:key|token|secret|password))=)[^&\s\"'<>\\]{8,}"
)
"""Whole keys. The groups hold what stands before a key and is none."""
_SIGNS = (
    "sk-", "pk-", "rk-", "gh", "github_", "glpat-", "xai-", "gsk_", "AIza", "hf_", "AKIA", "ASIA",
    "xox", "r8_", "pplx-", "nvapi-", "eyJ", "-----BEGIN ", "earer", "EARER", "asic", "ASIC", "?",
    "&",
)  # fmt: skip
"""A text without any of these has none of the forms; to compile them takes as long as to parse the
file."""
_PASSWORD = re.compile(r"://[^/\s:@]*:[^/\s@]+@")
_REFERS = re.compile(r"\$\{[^}]*\}")
_SECRET_WORDS = {
    "key", "apikey", "token", "secret", "password", "passwd", "pwd", "credential", "credentials",
    "authorization", "auth", "pat", "bearer",
}  # fmt: skip
_HARMLESS = re.compile(r"(?i)true|false|yes|no|on|off|none|[\d.]*")
SHORTEST = 8
"""Characters of a text that is a key by the name of what holds it."""


def may_hold(text: str) -> bool:
    """Whether it is worth looking for FORMS in a text."""
    return any(sign in text for sign in _SIGNS)


def has_key(text: str) -> bool:
    """Whether a part of the text has the form of a key, or is a URL with a password."""
    plain = _REFERS.sub("", text)
    return bool(may_hold(plain) and re.search(FORMS, plain)) or bool(_PASSWORD.search(plain))


def names_key(name: str) -> bool:
    """Whether what has this name holds a key: api_key, GITHUB_TOKEN, x-api-key."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return not _SECRET_WORDS.isdisjoint(words)


def is_key(name: str, text: str) -> bool:
    """Whether a value is a key by its form or by its name."""
    if has_key(text):
        return True
    plain = text.strip()
    whole = not _REFERS.search(plain) and not _HARMLESS.fullmatch(plain)
    return names_key(name) and len(plain) >= SHORTEST and whole


def shown_name(name: str) -> str:
    """A name from a file as an error may show it."""
    return "***" if has_key(name) or len(name) > 80 else name
