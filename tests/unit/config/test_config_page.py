"""docs/reference/configuration.md and the values say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from clew.config import environ, values
from clew.config.known import KNOWN

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "reference" / "configuration.md").read_text("utf-8")
SECTIONS: dict[str, type[Struct]] = {
    "Top of the file": values.Config, "providers": values.ProviderConfig,
    "models": values.ModelConfig, "price": values.PriceConfig, "limits": values.LimitsConfig,
    "tools": values.ToolsConfig, "mcpServers": values.McpConfig,
    "compaction": values.CompactionConfig, "chat": values.ChatConfig,
    "retention": values.RetentionConfig, "backup": values.BackupConfig,
}  # fmt: skip


def rows(section: str) -> list[list[str]]:
    """The cells of a section's table."""
    found = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    lines = re.findall(r"^\| (`.*) \|$", found[1], re.MULTILINE)
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def test_every_section_is_told() -> None:
    sections = {
        value for value in vars(values).values()
        if isinstance(value, type) and issubclass(value, Struct) and value is not Struct
    }  # fmt: skip
    assert sections == set(SECTIONS.values())


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_told_with_its_default(section: str) -> None:
    told = {row[0].strip("`"): row[2].strip("`") for row in rows(section)}
    known = {field.encode_name: field for field in fields(SECTIONS[section])}
    assert [*told] == [*known]
    for name, field in known.items():
        if isinstance(field.default, Struct):
            assert told[name] == "see below"
        elif field.default is NODEFAULT:
            made = field.default_factory
            wanted = "needed" if made is NODEFAULT else str(made())  # type: ignore[operator]
            assert told[name] == wanted, name
        elif field.default is None:
            assert told[name] == "none", name
        else:
            said = str(field.default).lower().removesuffix(".0")
            assert told[name] == said, name


def test_every_variable_is_told() -> None:
    told = {row[0].strip("`"): row[1].strip("`") for row in rows("Environment")}
    there = {each.name: ".".join(map(str, each.key)) for each in environ.variables().values()}
    assert told == there


def test_every_known_provider_is_told() -> None:
    body = PAGE.partition("## providers\n")[2].partition("| key |")[0]
    assert set(re.findall(r"`([a-z]+)`", body)) == KNOWN.keys()
    keys = {row[0].strip("`"): re.findall(r"`(\w+)`", row[1]) for row in rows("Keys of providers")}
    assert keys == {name: [*each.keys] for name, each in KNOWN.items() if each.keys}
