"""Names of models that the configuration has. No server is asked."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from clew.cli.params import TextType
from clew.config.loading import load
from clew.config.values import Config
from clew.errors import ClewError

EMBEDDED = "archivist"


def configured(config: Config) -> list[str]:
    """PROVIDER/NAME of each model that is named anywhere, each once; the archivist last."""
    named = [config.model, *config.fallback, *config.models, config.compaction.model, EMBEDDED]
    return list(dict.fromkeys(name for name in named if name))


class ModelName(TextType):
    """PROVIDER/NAME of a model. Completed from the configuration."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            names = configured(load().config)
        except (ClewError, OSError):  # a shell shows nothing then
            names = [EMBEDDED]
        return [CompletionItem(name) for name in names if incomplete.lower() in name.lower()]
