"""What a redaction takes out of texts, and what it leaves."""

from __future__ import annotations

import json
import logging
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.domain.logs import Redacting
from clew.domain.redaction import MARK, Redaction, Rules, without_passwords

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK=\n-----END RSA PRIVATE KEY-----"
KEYS = (
    "sk-proj-Ab1" + "x" * 20, "sk-ant-api03-" + "a" * 12, "ghp_" + "a" * 36, "AKIAIOSFODNN7EXAMPLE",
    "xoxb-123456789012-abc", "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "glpat-" + "a1" * 10, PEM,
    "AIza" + "b" * 35, "hf_" + "c" * 30,
)  # fmt: skip
OWN = ('pass "word"\\1', "correct-horse-battery", "schlüssel/mit=zeichen")
ALL = Redaction(
    Rules(secrets=OWN, homes=True, home="/srv/ann-home", people=True, names=("annika",))
)
PIECES = (
    "Bearer ", "password=", '"token": "', "://u:", "@", "=", ":", '"', "'", "\\", "/home/",
    "/srv/ann-home", "C:\\Users\\", "?key=", "annika", "+49 30 ", "sk-", "eyJ", ".", "-", " ", "\n",
    "a1", "REDACTED", "~", "…", "ann@example.com", "-----BEGIN PRIVATE KEY", "é", "0",
)  # fmt: skip
around = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join)
texts = st.lists(st.sampled_from((*PIECES, *KEYS, *OWN)) | st.text(max_size=5), max_size=12).map(
    "".join
)


@pytest.mark.parametrize("key", KEYS)
def test_a_key_is_found_by_its_form(key: str) -> None:
    redaction = Redaction(Rules())
    for text in (key, f"use {key}, please", f"({key})", json.dumps({"a": [key]}), f"X={key}\n"):
        shown = redaction(text)
        assert MARK in shown
        assert not any(line in shown for line in key.split("\n"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.d3f/gh1jk==", f"Authorization: Bearer {MARK}"),
        ("https://u:p@ss@h/x?api_key=12345678&b=2", f"https://u:{MARK}@h/x?api_key={MARK}&b=2"),
        ('{"password": "hunter2", "a": "b"}', f'{{"password": "{MARK}", "a": "b"}}'),
        (r"{\"db_password\": \"hunter2\"}", rf"{{\"db_password\": \"{MARK}\"}}"),
        ("DB_PASSWORD=hunter2 x", f"DB_PASSWORD={MARK} x"),
        ("host=h password=hunter2 user=u", f"host=h password={MARK} user=u"),
        ("export GITHUB_TOKEN=abc1234", f"export GITHUB_TOKEN={MARK}"),
    ],
)
def test_a_secret_is_found_by_what_names_it(text: str, shown: str) -> None:
    assert Redaction(Rules())(text) == shown


@pytest.mark.parametrize(
    "text",
    ["max_tokens=4096", "token = get_token()", "the secret of success", "http://localhost:8080/a",
     "task-list-of-things-to-do", "a basic understanding of it", "https://h/?page=2&sort=name",
     "commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "2026-11-30 06:39:53", "", "***"],
)  # fmt: skip
def test_what_is_none_stays(text: str) -> None:
    assert Redaction(Rules(homes=True))(text) == text


def test_homes_and_people() -> None:
    homes = Redaction(Rules(homes=True, home="/root"))
    assert homes("/home/ann/x /root/.ssh /root2 /Users/Bob/L C:\\Users\\Bob\\x") == (
        "~/x ~/.ssh /root2 ~/L ~\\x"
    )
    assert homes("ann@example.com +49 30 1234567") == "ann@example.com +49 30 1234567"
    assert ALL("ann.b@example.co.uk, +49 30 1234567, (555) 123-4567; Annika's, annikas") == (
        f"{MARK}, {MARK}, {MARK}; {MARK}'s, annikas"
    )


def test_known_secrets_in_any_spelling() -> None:
    for secret in OWN:
        for text in (
            secret, json.dumps(secret), json.dumps(json.dumps(secret)), f"x{secret}y",
            json.dumps(secret, ensure_ascii=False),
        ):  # fmt: skip
            shown = ALL(text)
            assert MARK in shown
            assert secret not in shown
            assert json.dumps(secret)[1:-1] not in shown
    assert "1 secrets" in repr(Redaction(Rules(secrets=("hunter22",))))
    assert "hunter22" not in repr(Redaction(Rules(secrets=("hunter22",))))


@pytest.mark.parametrize(
    "text",
    ["use sk-abc…", "with correct-hor…", "Bearer ab…", "postgres://u:pas…", "it is eyJhbG…",
     "-----BEGIN RSA PRIV…"],
)  # fmt: skip
def test_half_a_key_at_the_end_of_a_title(text: str) -> None:
    shown = ALL.cut(text)
    assert shown.endswith(f"{MARK}…")
    assert ALL.cut("A talk about keys…") == "A talk about keys…"


@given(texts)
def test_again_changes_nothing(text: str) -> None:
    once = ALL(text)
    assert ALL(once) == once


@given(st.sampled_from((*KEYS, *OWN)), around, around)
def test_no_key_is_left_whatever_stands_around_it(key: str, before: str, after: str) -> None:
    """Also one that other rules cut into pieces, or that spans lines."""
    shown = ALL(f"{before} {key} {after}")
    assert key not in shown


@given(texts)
def test_passwords_of_urls(text: str) -> None:
    shown = without_passwords(f"at postgresql://app:hunt3r@db/x {text}")
    assert "hunt3r" not in shown
    assert without_passwords(shown) == shown


def test_a_log_says_no_key() -> None:
    out = StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(Redacting(Redaction(Rules(secrets=("correct-horse",)))))
    logger = logging.getLogger("tests.redaction")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        logger.warning("POST %s %s", "https://u:hunt3r@h/?token=abcdefgh1", {"k": "correct-horse"})
        logger.warning("bad %d", "correct-horse")
        try:
            raise ValueError("Bearer abcdef123456789")
        except ValueError:
            logger.exception("failed with correct-horse", stack_info=True)
    finally:
        logger.removeHandler(handler)
    said = out.getvalue()
    assert "ValueError: Bearer REDACTED" in said
    assert "cannot be shown" in said
    for secret in ("hunt3r", "correct-horse", "abcdef1234", "abcdefgh1"):
        assert secret not in said.replace('"correct-horse"', "")  # this file's own lines
