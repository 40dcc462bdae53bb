"""Asking before something that cannot be taken back."""

from __future__ import annotations

import sys

import click


def can_ask(yes: bool, what: str) -> None:
    """Refuse at once when a question will come and nobody is there to answer it."""
    if not yes and not sys.stdin.isatty():
        raise click.UsageError(f"{what} asks first, and there is no terminal to ask on; give --yes")


def agreed(question: str, yes: bool) -> bool:
    """Whether the person agrees."""
    if yes or click.confirm(question, default=False, err=True):
        return True
    click.echo("Nothing was done.", err=True)
    return False
