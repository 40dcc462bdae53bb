"""A conversation that is compacted while everything that can happen happens, told by a seed.

    python compaction_faults.py FIRST LAST     # runs of these seeds; prints one JSON object

Between any two steps of the engine, and while its summariser works, others append, cut, edit, undo,
cancel, and compact the same conversation, by another handle of the same store. The summariser times
out, refuses, says nothing or nonsense, is cut off, stalls, and meets the errors of a provider. A
model (`_Truth`) knows what was accepted and what was withdrawn; after each step the context must
agree with it.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import clew
from clew.compaction.engine import Compactor
from clew.compaction.summarize import SummaryReply, SummaryRequest
from clew.context.budget import Budget
from clew.domain.messages import Draft, Role
from clew.domain.parts import ToolCall, ToolResult, plain_text, result_text
from clew.testing.clock import FakeClock, seeded_ids

BUDGET = Budget(window=6_000)
PATIENCE = 30.0
"""Seconds that the engine waits for a summary."""
STALLED = 0.03
"""The same, where every summary comes too late. Such runs are apart: nothing else may depend on how
fast this machine is."""
REFUSALS = (clew.Refused, clew.NotFound, clew.InputError)
"""Answers of the store to what came too late."""
STOPPING = ("cut", "undo_cut", "edit", "cancel", "undo", "compete")
"""What others do that stops an attempt."""
_SHM = Path("/dev/shm")
MEMORY = _SHM if _SHM.is_dir() else None
"""Where stores are made: in memory if possible, a sync costs nothing there."""


class ProviderError(Exception):
    """What an SDK raises for an HTTP status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code = status


def _timeout(_: SummaryRequest) -> str:
    raise TimeoutError("the read timed out")


def _status(status: int) -> Callable[[SummaryRequest], str]:
    def fail(_: SummaryRequest) -> str:
        raise ProviderError(status)

    return fail


def _stall(request: SummaryRequest) -> str:
    """Past the deadline, whatever is asked; the answer comes when nobody waits any more."""
    threading.Event().wait(request.patience * 3)
    return good(request)


def good(request: SummaryRequest) -> str:
    """A narrative, and operations right and wrong: the last rules and asks of a ledger are never
    the model's to remove."""
    rows = [{"kind": "fact", "text": "the summary says so", "seq": 1}]
    return json.dumps(
        {"narrative": "Work went on.", "add": rows, "supersede": [[1, 2], [9, 10**9]], "close": [3]}
    )


FAULTS: dict[str, Callable[[SummaryRequest], SummaryReply | str]] = {
    "good": good,
    "time-out": _timeout,
    "refusal": lambda _: "I'm sorry, but I can't help with that.",
    "empty": lambda _: "",
    "cut off": lambda request: SummaryReply(text=good(request)[:40], finish="length"),
    "garbage": lambda _: "\x00\ufffd{]" * 40,
    "wrong shape": lambda _: '{"narrative": 7, "add": "all", "close": {"a": []}}',
    "endless": lambda _: json.dumps({"narrative": "x" * 200_000}),
    "401": _status(401),
    "413": _status(413),
    "500": _status(500),
    "stall": _stall,
}


@dataclass
class Report:
    """What some runs came to. Everything but `runs` and the counts of what happened must be 0."""

    runs: int = 0
    lost: int = 0
    doubled: int = 0
    forks: int = 0
    findings: int = 0
    """What verify() says."""
    broken: int = 0
    """Runs that ended with an error."""
    wrong: int = 0
    """Contexts that do not agree with the log."""
    summaries: Counter[str] = field(default_factory=Counter[str])
    outcomes: Counter[str] = field(default_factory=Counter[str])
    others: Counter[str] = field(default_factory=Counter[str])
    """What was done between the steps."""
    problems: list[str] = field(default_factory=list[str])

    def to_json(self) -> str:
        return json.dumps({name: getattr(self, name) for name in self.__dataclass_fields__})

    @property
    def faulty(self) -> int:
        return self.lost + self.doubled + self.forks + self.findings + self.wrong + self.broken


class Summarizer:
    """Fails in another way each time, beginning with that of the seed; others act meanwhile."""

    model = "stub"

    def __init__(self, run: Run, stalls: bool) -> None:
        self._run, self._stalls, self._asked = run, stalls, 0

    def __call__(self, request: SummaryRequest) -> SummaryReply | str:
        run = self._run
        others = tuple(FAULTS)[:-1]
        name = "stall" if self._stalls else others[(run.seed + self._asked) % len(others)]
        self._asked += 1
        run.report.summaries[name] += 1
        if not self._stalls:
            try:
                run.disturb()
            except BaseException as error:  # the engine takes it for a fault of the summariser
                run.report.problems.append(f"seed {run.seed}: {error!r}")
                raise
        return FAULTS[name](request)


class Run:
    """One conversation, from its first message to the last look at it."""

    def __init__(self, seed: int, folder: Path, report: Report) -> None:
        self.rng, self.report, self.seed = random.Random(f"compaction {seed}"), report, seed
        self.clock = FakeClock()
        ids = seeded_ids(self.clock, seed)
        self._truth: dict[str, str] = {}
        """Text of everything accepted, by key."""
        self._turn: clew.TurnHandle | None = None
        self._number = self._depth = 0
        self._rate = self.rng.choice((0.03, 0.1, 0.4))
        """How often something happens between two steps."""
        self._works = self.rng.choice((0.5, 0.9))
        """How often a tool is called, and nobody speaks."""
        self.store = clew.open(folder / "clew.db", clock=self.clock, ids=ids)
        self.conv = self.store.profile("me").create()
        self.other = self.store.profile("me").open(self.conv.id)
        stalls = self.rng.random() < 0.15
        patience = STALLED if stalls else PATIENCE
        model = Summarizer(self, stalls)
        self.compactor = Compactor(
            BUDGET, summarizer=model, fallback=self.rng.choice((None, model)), patience=patience,
            watch=lambda _: self.disturb(),
        )  # fmt: skip
        other = self.rng.choice((None, model))
        self.rival = Compactor(BUDGET, summarizer=other, patience=patience)

    def go(self) -> None:
        """Some rounds of growing and compacting; then everything is looked at once more."""
        with self.store:
            for _ in range(self.rng.randrange(2, 5)):
                for _ in range(self.rng.randrange(4, 14)):
                    self._append()
                self._compact()
                self._check()
            self._compare()
            findings = self.store.verify()
            self.report.findings += len(findings)
            self._complain(findings)
        self.report.runs += 1

    def _compact(self) -> None:
        trigger = self.rng.choice(("context", "user", "user", "hard", "soft"))
        if trigger == "context":
            self._context()
            return
        stop = threading.Event()
        if self.rng.random() < 0.1:
            stop.set()
        outcome = self.compactor.compact(self.conv, trigger, stop=stop)
        self.report.outcomes[outcome.state] += 1

    def _context(self) -> None:
        """The next request. Where others stop every attempt, it may not fit, and says so."""
        before = sum(self.report.others[name] for name in STOPPING)
        try:
            self.compactor.context(self.conv)
            self.report.outcomes["context"] += 1
        except clew.ContextTooLarge:
            self.report.outcomes["too large"] += 1
            if before == sum(self.report.others[name] for name in STOPPING):
                raise

    # ------------------------------------------------------------------ what others do

    def disturb(self) -> None:
        """Perhaps something happens here, never while something happens already."""
        if self._depth or self.rng.random() > self._rate:
            return
        self._depth += 1
        acts = (self._append, self._append, self._cut, self._undo_cut, self._edit, self._cancel,
                self._undo, self._compete, self._wait, self._turn_over)  # fmt: skip
        act = self.rng.choice(acts)
        self.report.others[act.__name__.strip("_")] += 1
        try:
            act()
        except REFUSALS:
            pass
        finally:
            self._depth -= 1

    def _append(self) -> None:
        """Somebody speaks, or the agent calls a tool and has its result."""
        self._number += 1
        works = self.rng.random() < self._works
        drafts = self._call() if works else [self._said(Role.USER)]
        if self.rng.random() < 0.5:
            drafts.append(self._said(Role.ASSISTANT))
        self._accept(drafts)

    def _accept(self, drafts: list[Draft]) -> None:
        """Store them, as a step of the turn in flight if there is one that was not cut away."""
        if self._turn is not None and self.other.info().turn is None:
            self._turn = None
        if self._turn is None:
            self.other.append(drafts)
        else:
            self._turn.record(drafts)
        self._truth.update({str(draft.key): _marks(draft) for draft in drafts})

    def _turn_over(self) -> None:
        """A turn begins, or the one in flight ends."""
        self._number += 1
        if self._turn is None:
            draft = self._said(Role.USER)
            turn = self.other.begin_turn([draft])
            assert isinstance(turn, clew.TurnHandle)
            self._turn = turn
        else:
            turn, self._turn = self._turn, None
            draft = self._said(Role.ASSISTANT)
            turn.finish([draft])
        self._truth[str(draft.key)] = _marks(draft)

    def _said(self, role: Role) -> Draft:
        mark = f"mark-{self.seed}-{self._number}-{role}"
        words = self.rng.choice(
            ("Always reply in French.", "The port is 8123.", "Please look at src/a.py.", "Done.")
        )
        # What people say while a turn runs stays in it word for word: it has to fit.
        sizes = (1, 20, 200) if self._turn is None else (1, 20)
        text = f"{mark} {words} " + "more of it " * self.rng.choice(sizes)
        return Draft(role=role, parts=(clew.Text(text),), key=mark)

    def _call(self) -> list[Draft]:
        mark = f"mark-{self.seed}-{self._number}"
        path = f"src/{mark}-call.py"
        call = ToolCall(f"{mark}-call", "edit", json.dumps({"path": path}))
        output = f"{mark}-result " + "a line of output\n" * self.rng.choice((1, 30, 300))
        result = ToolResult(f"{mark}-call", output, "edit")
        return [
            Draft(role=Role.ASSISTANT, parts=(call,), key=f"{mark}-call"),
            Draft(role=Role.TOOL, parts=(result,), key=f"{mark}-result"),
        ]

    def _recent(self) -> list[clew.Message]:
        back = self.rng.choice((4, 12, 40))
        return list(self.other.messages(first=max(1, self.other.info().head - back)))

    def _cut(self) -> None:
        """Withdraw the end of the log."""
        if recent := self._recent():
            self.other.cut(self.rng.choice(recent).uid)

    def _undo_cut(self) -> None:
        """Bring back what the newest cut withdrew."""
        self.other.undo_cut()

    def _edit(self) -> None:
        """Say the last thing once more, in other words."""
        said = [message for message in self._recent() if message.role is Role.USER]
        if said:
            self._number += 1
            draft = self._said(Role.USER)
            self.other.edit(said[-1].uid, draft)
            self._turn = None
            self._truth[str(draft.key)] = _marks(draft)

    def _cancel(self) -> None:
        self.rival.cancel(self.other)

    def _undo(self) -> None:
        self.rival.undo(self.other)

    def _compete(self) -> None:
        """Another host compacts the same conversation."""
        self.rival.compact(self.other, self.rng.choice(("user", "hard", "soft")))

    def _wait(self) -> None:
        """Time passes, or jumps back."""
        self.clock.advance(self.rng.choice((1, 60, 600, 86_400, -3_600)) * 1_000_000)

    # ------------------------------------------------------------------ what must be so

    def _check(self) -> None:
        """The context fits, shows all that no compaction covers, and nothing withdrawn. Only steps
        of the turn in flight, which nothing may cover, become short where they have no room."""
        context = Compactor(BUDGET).context(self.conv)
        chat = context.chat(self.conv.blob)
        shown = json.dumps(chat, ensure_ascii=False)
        inputs = self.conv.context_inputs()
        visible = list(self.conv.messages())
        cover = 0 if inputs.compaction is None else inputs.compaction.covers_to
        steps = inputs.conversation.turn if context.shortened else None
        above = {
            str(m.key) for m in visible
            if m.seq > cover and (steps is None or m.turn != steps or m.role is Role.USER)
        }  # fmt: skip
        known = {str(m.key) for m in visible}
        withdrawn = self._truth.keys() - known
        problems = [
            f"{key} is above the cover and not shown" for key in above if not _in(key, shown)
        ]
        problems += [f"{key} was withdrawn and is shown" for key in withdrawn if _in(key, shown)]
        problems += [f"the result of {id} is not shown" for id in _unanswered(chat, known)]
        if context.tokens > context.limit:
            problems.append(f"{context.tokens} tokens of {context.limit}")
        if (last := self._last_request(cover)) and last not in shown:
            problems.append("the last request is not there word for word")
        self.report.wrong += len(problems)
        self._complain(problems)

    def _last_request(self, cover: int) -> str | None:
        """Its text as JSON. None where nobody asks, and where a compaction had put it away behind
        later requests that were withdrawn since: then the ledger has it, near word for word."""
        said = [m for m in _log(self.conv) if m.role is Role.USER]
        asked = [m for m in self.conv.messages() if m.role is Role.USER]
        if not asked or (asked[-1].seq <= cover and said[-1].seq > asked[-1].seq):
            return None
        return json.dumps(asked[-1].text, ensure_ascii=False)[1:-1]

    def _compare(self) -> None:
        """The log holds what was accepted, once, in one conversation."""
        kept = Counter(str(m.key) for m in _log(self.conv))
        texts = {str(m.key): _marks(m) for m in _log(self.conv)}
        lost = [k for k, text in self._truth.items() if texts.get(k) != text]
        doubled = [key for key, count in kept.items() if count > 1]
        self.report.lost += len(lost)
        self.report.doubled += len(doubled)
        self.report.forks += len(self.store.profile("me").list().items) - 1
        self.report.forks += len(self.conv.children())
        self._complain([f"lost or doubled: {each}" for each in (*lost, *doubled)])

    def _complain(self, problems: Sequence[object]) -> None:
        self.report.problems += [f"seed {self.seed}: {each}" for each in problems]


def _unanswered(chat: Sequence[dict[str, Any]], known: set[str]) -> list[str]:
    """Calls that are shown and whose result, which the log has, is not."""
    answers = {m["tool_call_id"]: str(m.get("content")) for m in chat if m["role"] == "tool"}
    calls = [call["id"] for m in chat for call in m.get("tool_calls", ())]
    results = {id: f"{id.removesuffix('-call')}-result" for id in calls}
    return [id for id in calls if results[id] in known and results[id] not in answers.get(id, "")]


def _in(key: str, shown: str) -> bool:
    """Whether a message stands there: its key begins its text, or names its call or file."""
    return any(f"{key}{end}" in shown for end in (" ", ".", '"'))


def _log(conv: clew.Conversation) -> list[clew.Message]:
    """Every message, hidden ones too."""
    found: list[clew.Message] = []
    cursor = None
    while True:
        page = conv.log(limit=200, cursor=cursor, hidden=True)
        found += page.items
        if page.next is None:
            return found
        cursor = page.next


def _marks(message: Draft | clew.Message) -> str:
    """All text of a message."""
    results = [result_text(part) for part in message.parts if isinstance(part, ToolResult)]
    calls = [part.arguments for part in message.parts if isinstance(part, ToolCall)]
    return "\n".join([plain_text(message.parts), *results, *calls])


def run(seeds: range) -> Report:
    """Runs of these seeds, each in a store of its own."""
    report = Report()
    for seed in seeds:
        folder = Path(tempfile.mkdtemp(dir=MEMORY))
        try:
            Run(seed, folder, report).go()
        except Exception as error:  # noqa: BLE001 - told with its seed, and the others go on
            report.broken += 1
            trace = traceback.extract_tb(error.__traceback__)[-1]
            report.problems.append(f"seed {seed}: {error!r} in {trace.filename}:{trace.lineno}")
        shutil.rmtree(folder)
    return report


if __name__ == "__main__":
    print(run(range(int(sys.argv[1]), int(sys.argv[2]) + 1)).to_json())
