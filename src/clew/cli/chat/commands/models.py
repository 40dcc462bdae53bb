"""/model: which models there are, and which one answers."""

from __future__ import annotations

from collections.abc import Sequence

from clew.cli.chat.api import Chat
from clew.cli.model_names import configured
from clew.cli.text import one_line
from clew.errors import InputError
from clew.providers.api import Model


async def model(chat: Chat, given: str) -> None:
    """Shows the models that can be chosen, those that servers list included, or has another one
    answer from now on. A part of a name is enough where only one has it. The whole conversation
    goes to the new model; thinking of another one is left out."""
    if given:
        await switch(chat, given)
        return
    current = await chat.host.model_of(chat.conv)
    known = {each.shown: each for each in await chat.host.models()}
    known.setdefault(current.shown, current)
    rows = [_row(each, each.shown == current.shown) for each in known.values()]
    chat.table(("", "MODEL", "WINDOW", "PRICE IN / OUT"), rows)
    chat.write(("Another one: /model NAME", "dim"))


async def complete_model(chat: Chat, typed: str) -> Sequence[str]:
    """Names from the configuration: no server is asked while somebody types."""
    return [name for name in configured(chat.config) if typed.lower() in name.lower()]


async def switch(chat: Chat, given: str) -> None:
    """Have another model answer, and say so."""
    name = _meant(given, [each.shown for each in await chat.host.models()])
    chosen = await chat.host.use_model(chat.conv, name)
    chat.write("From now on ", (one_line(chosen.shown), "bold"), " answers here.")


def _meant(given: str, shown: Sequence[str]) -> str:
    """The one name that was typed, or that has in it what was typed. What no server lists may be
    there all the same: the host decides."""
    typed = given.lower()
    same = [name for name in shown if typed in (name.lower(), name.lower().partition("/")[2])]
    near = same or [name for name in shown if typed in name.lower()]
    if len(near) > 1:
        listed = ", ".join(map(one_line, near[:5])) + (", …" if len(near) > 5 else "")
        raise InputError(f"{one_line(given)!r} names several models: {listed}; give more of it")
    return near[0] if near else given


def _row(each: Model, current: bool) -> tuple[str, ...]:
    price = "-" if each.price is None else f"${each.price.input:g} / ${each.price.output:g}"
    mark = "→" if current else ""
    return mark, one_line(each.shown), f"{each.window:,}", price
