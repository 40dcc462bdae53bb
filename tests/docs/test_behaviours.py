"""Each behaviour and each invariant has its row, and the tests that it names are there."""

from __future__ import annotations

import re

from pages import DOCS, known_tests, names, rows, sections

BEHAVIOURS = {
    "S01": 11, "S02": 6, "S03": 17, "S04": 6, "S05": 9, "S06": 13, "S07": 9, "S08": 10, "S09": 5,
    "S10": 8, "S11": 14, "S12": 11, "S13": 6, "S14": 7, "S15": 6, "S16": 7, "S17": 10, "S18": 13,
    "S19": 9, "S20": 7, "S21": 8, "S22": 7, "S23": 6, "S24": 3, "S25": 6, "S26": 5, "S27": 4,
    "S28": 3, "S29": 7, "S30": 4, "S31": 7, "S32": 3, "S33": 4, "S34": 5, "S35": 6, "S36": 10,
    "S37": 6, "S38": 4, "S39": 5, "S40": 11, "S41": 5, "S42": 6, "S43": 10, "S44": 8, "S45": 13,
    "S46": 11, "S47": 5, "S48": 4, "S49": 4, "S50": 9, "S51": 4,
}  # fmt: skip
SCENARIOS = [*(f"T{n:02d}" for n in range(1, 25)), *(f"P{n:02d}" for n in range(1, 17))]
STATUS = re.compile(r"met|impossible by construction|not yet \([a-zA-Z][^()]+\)")


def test_every_behaviour_has_a_row() -> None:
    systems = sections(DOCS / "behaviours.md")
    systems.pop("Scenarios")
    assert list(systems) == list(BEHAVIOURS)
    for system, body in systems.items():
        wanted = [f"{system}.{number}" for number in range(1, BEHAVIOURS[system] + 1)]
        assert [row[0] for row in rows(body) if row[0].startswith("S")] == wanted


def test_every_status_is_shown_by_a_test_that_is_there() -> None:
    for body in sections(DOCS / "behaviours.md").values():
        for row in rows(body):
            if row[0].startswith("S"):
                _, behaviour, status, how, shown = (*row, "")[:5]
                assert behaviour, row
                assert how, row
                assert STATUS.fullmatch(status), row
                assert names(shown) or status.startswith("not yet"), row
                assert not set(names(shown)) - known_tests(), row


def test_every_scenario_has_a_test_that_is_there() -> None:
    found = [row for row in rows(sections(DOCS / "behaviours.md")["Scenarios"]) if row[0]]
    assert [row[0] for row in found] == SCENARIOS
    for row in found:
        assert names(row[2]), row
        assert not set(names(row[2])) - known_tests(), row


def test_every_invariant_names_tests_that_are_there() -> None:
    rules = sections(DOCS / "invariants.md", "###")
    assert list(rules) == [f"I-{number:02d}" for number in range(24)]
    for rule, body in rules.items():
        assert re.search(r"^- (Constraint|At the door):", body, re.MULTILINE), rule
        assert re.search(r"^- verify:", body, re.MULTILINE), rule
        shown = body.split("- Tests:")[1]
        wanted = [name for name in names(shown) if name.startswith("test_")]
        assert not set(wanted) - known_tests(), rule
        assert wanted or rule == "I-18", rule
