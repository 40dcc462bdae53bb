"""INDEX.tsv is up to date: `python tests/contract/index.py` writes it."""

from __future__ import annotations

from index import INDEX, text


def test_the_index_names_a_test_for_every_behaviour() -> None:
    assert INDEX.read_text("utf-8") == text(), "run python tests/contract/index.py"
    rows = [line.split("\t") for line in text().splitlines()[1:]]
    assert len({row[0] for row in rows}) == len(rows) == 377
    assert all(tests or status.startswith("not yet") for _, tests, status, _ in rows)
