"""clew completion: commands, options and ids completed by a shell."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from clew.cli.settings import home_short, settings_of

SHELLS = ("bash", "zsh", "fish")
_KINDS: dict[str, type[ShellComplete]] = {
    "bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete,
}  # fmt: skip


@click.group("completion")
def command() -> None:
    """Complete commands and ids in your shell.

    Without SHELL, the one that SHELL in the environment names.
    """


def _shell(given: str | None) -> str:
    shell = given or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise click.UsageError(f"the shell {shell!r} is not known; give {', '.join(SHELLS)}")
    return shell


def _script(ctx: click.Context, shell: str) -> str:
    root = ctx.find_root().command
    kind = _KINDS[shell](root, {}, "clew", "_CLEW_COMPLETE")
    return kind.source_template % kind.source_vars()


@command.command("show")
@click.argument("shell", required=False, type=click.Choice(SHELLS))
@click.pass_context
def show(ctx: click.Context, shell: str | None) -> None:
    """Print the script that your shell reads."""
    settings_of(ctx).screen.stream.write(_script(ctx, _shell(shell)))


@command.command("install")
@click.argument("shell", required=False, type=click.Choice(SHELLS))
@click.pass_context
def install(ctx: click.Context, shell: str | None) -> None:
    """Write the script to where your shell looks for it."""
    chosen = _shell(shell)
    place, remark = _place(chosen)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(_script(ctx, chosen), encoding="utf-8")
    screen = settings_of(ctx).screen
    screen.line(f"Wrote {home_short(place)}. Open a new shell to use it.")
    if remark:
        screen.line(remark)


def _place(shell: str) -> tuple[Path, str]:
    """Where the script belongs, and what else the person has to do."""
    home = Path.home()
    if shell == "bash":
        data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
        needs = "It is read if the package bash-completion is installed."
        return data / "bash-completion" / "completions" / "clew", needs
    if shell == "fish":
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        return config / "fish" / "completions" / "clew.fish", ""
    needs = "Your ~/.zshrc must have, before compinit: fpath+=~/.zfunc"
    return home / ".zfunc" / "_clew", needs
