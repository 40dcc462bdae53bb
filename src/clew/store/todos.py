"""Todos: what an agent means to do, beside the log and rendered at request time only."""

from __future__ import annotations

from collections.abc import Sequence

from clew.domain.notes import Todo
from clew.errors import InputError
from clew.store.backend import Transaction
from clew.store.kit import Kit

STATES = ("pending", "active", "done", "dropped")


def replace_all(tx: Transaction, kit: Kit, no: int, todos: Sequence[Todo], now: int) -> None:
    """Make the list equal to `todos`."""
    for todo in todos:
        if todo.state not in STATES:
            raise InputError(f"todo state {todo.state!r} is not one of {', '.join(STATES)}")
    tx.run("todo_delete", no=no)
    for number, todo in enumerate(todos, 1):
        text = kit.label("todo", todo.text)
        tx.run("todo_insert", no=no, number=number, text=text, state=todo.state, at=now)


def all_of(tx: Transaction, no: int) -> tuple[Todo, ...]:
    """In order."""
    return tuple(Todo(text=r[1], state=r[2]) for r in tx.rows("todo_all", no=no))


def copy_open(tx: Transaction, origin: int, branch: int) -> None:
    """Give a branch the todos that are not done."""
    tx.run("todo_copy", no=origin, branch=branch)


def delete(tx: Transaction, no: int) -> None:
    tx.run("todo_delete", no=no)


def erase(tx: Transaction, no: int, number: int, text: str) -> None:
    """Put this text in the place of one."""
    tx.run("todo_erase", no=no, number=number, text=text)


def texts(tx: Transaction, no: int) -> list[tuple[int, str]]:
    """(number, text)"""
    return [(row[0], row[1]) for row in tx.rows("todo_all", no=no)]
