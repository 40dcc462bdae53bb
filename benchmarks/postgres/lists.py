"""The newest 50 conversations with title, preview and activity."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import clew
from benchmarks import clew_adapter
from benchmarks.jobs import Bench, Job, Readings
from benchmarks.measure import Target, interleave, typical
from benchmarks.postgres import floor, server, stores

_SIZES = {"10k": 10_000, "100k": 100_000}
_FLAT = 1.25
_LISTED = """
SELECT id, coalesce(title_user, title_llm, title_derived), preview, active_at FROM conversation
WHERE profile = %b AND archived = 0 AND kind <> 'delegate' AND binned_at IS NULL
ORDER BY active_at DESC, no DESC LIMIT 50
"""


def lists(bench: Bench) -> Readings:
    """Warm, as a client that shows the list again and again; both sizes in the same rounds."""
    actions: dict[str, Callable[[], float]] = {}
    with ExitStack() as stack:
        for label, size in _SIZES.items():
            url = server.url(stores.listed(size))
            profile = stack.enter_context(clew.open(url)).profile(clew_adapter.PROFILE)
            under = floor.Floor(url)
            stack.callback(under.close)
            found = profile.list(limit=50).items
            bare = under.rows(_LISTED, (clew_adapter.PROFILE,))
            assert [item.id for item in found] == [row[0] for row in bare]
            actions[f"clew {label}"] = _milliseconds(partial(profile.list, limit=50))
            ask = partial(under.rows, _LISTED, (clew_adapter.PROFILE,))
            actions[f"floor {label}"] = _milliseconds(ask)
        interleave(1, actions)
        samples = interleave(bench.pick(9, 25), actions)
    small, large = _SIZES
    for label in _SIZES:
        yield f"pg_list_{label}", samples.ratio(f"clew {label}", f"floor {label}", "ms")
    yield f"pg_list_flat_{large}", samples.ratio(f"clew {large}", f"clew {small}", "ms")


def _milliseconds(action: Callable[[], object]) -> Callable[[], float]:
    return lambda: typical(9, action) * 1e3


LISTS = Job(
    "lists",
    lists,
    (
        *(
            Target(f"pg_list_{label}", None, size=size, says=f"list 50 of {label} conversations")
            for label, size in _SIZES.items()
        ),
        Target(
            "pg_list_flat_100k",
            _FLAT,
            sides=("at 100k", "at 10k"),
            size=_SIZES["100k"],
            says="list 50 of 100k conversations, against 50 of 10k",
        ),
    ),
)
