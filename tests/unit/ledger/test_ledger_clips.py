"""What is too long is cut where it is worth least, and each cut is marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from talks import rows, user

from clew.compaction.ledger.sentences import MOST_SENTENCE, clip, sentences

FILLER = "so that whoever comes after us will find their way around in it, "
RULE = (
    f"Please always keep to the layout that we have, {FILLER * 3}never touch src/db/schema.py "
    f"or migrations/0001_first.sql, {FILLER * 3}and do not raise the timeout over 30 seconds."
)


def test_a_long_rule_keeps_what_it_forbids_and_the_files_it_names() -> None:
    (row,) = rows([user(1, RULE)], "rule")
    assert len(row.text) <= MOST_SENTENCE
    assert row.text.startswith("Please always keep to the layout")
    for part in ("never touch src/db/schema.py", "migrations/0001_first.sql", "do not", "30 s"):
        assert part in row.text
    assert "…" in row.text


def test_each_cut_is_marked() -> None:
    text = "Begin here, " + "word word word, " * 30 + "but never use port 8080, " + "word, " * 40
    short = clip(text, 100)
    assert "never use port 8080" in short
    assert short.endswith(" …")
    assert short.count("…") >= 2


@given(st.text(alphabet="ab.,; /n0", max_size=400), st.integers(20, 200))
def test_a_clip_is_never_longer_and_has_only_words_of_its_text(text: str, most: int) -> None:
    short = clip(text, most)
    assert len(short) <= most
    if len(text) <= most:
        assert short == text
    else:
        assert "…" in short
        assert all(piece.strip() in text for piece in short.split("…"))


def test_what_has_no_letter_or_digit_is_no_sentence() -> None:
    assert [one.text for one in sentences("!. ?! Yes. ... !. ")] == ["Yes."]
