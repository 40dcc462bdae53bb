"""clew keeps the conversations of AI agents: never lost, doubled or forked.

    import clew

    store = clew.open("agent.db")
    conv = store.profile("me").conversation("support-42")
    conv.add({"role": "user", "content": "hi"})
    reply = my_model(conv.context("my-model"))
    conv.add(reply)

What is exported here is the public API; see docs/ARCHITECTURE.md for the words.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.compaction.engine import Compactor
    from clew.compaction.outcome import Outcome
    from clew.compaction.receipt import Receipt
    from clew.compaction.summarize import Summarizer, SummaryReply, SummaryRequest
    from clew.config import Limits
    from clew.context.budget import Budget, budget_for
    from clew.context.build import Context
    from clew.domain.boundaries import (
        Boundary,
        DeliveryReport,
        PendingBoundary,
        Subscriber,
    )
    from clew.domain.changes import Change, Mark
    from clew.domain.compactions import Attempt, Compaction, Inline, Proposal, Ref, Stub
    from clew.domain.conversations import (
        ConversationInfo,
        ConversationSummary,
        ListFilter,
        NewConversation,
        Page,
        Workspace,
    )
    from clew.domain.cuts import Cut, CutOutcome
    from clew.domain.messages import Appended, Draft, Message, Role, Waiting, assistant, user
    from clew.domain.notes import Goal, Job, JobRight, Presence, Todo
    from clew.domain.parts import (
        File,
        Image,
        Part,
        Parts,
        Reasoning,
        Text,
        ToolCall,
        ToolResult,
        Unknown,
    )
    from clew.domain.routes import Received, ResetOutcome, route_key
    from clew.domain.search import Hit, SearchPage, SearchQuery, SearchStatus
    from clew.domain.turns import (
        Approval,
        Ask,
        CallPlan,
        CallResult,
        Delivered,
        Delivery,
        ModelCall,
        ModelUsage,
        Recorded,
        Right,
        Turn,
        TurnEnded,
        TurnKnown,
        TurnQueued,
        Usage,
        UsageRow,
    )
    from clew.errors import (
        Ambiguous,
        BatchConflict,
        Busy,
        Cancelled,
        ClewError,
        ContextTooLarge,
        Corrupt,
        CutOvertaken,
        Ended,
        ImportOvertaken,
        InboxFull,
        InputError,
        InvalidCompaction,
        InvalidCursor,
        KeyReused,
        NetworkFolder,
        NotFound,
        Overtaken,
        Quarantined,
        ReadOnly,
        Refused,
        RightLost,
        SchemaTooNew,
        SearchUnavailable,
        Spooled,
        Stale,
        StoreClosed,
        StoreError,
        StoreFull,
        StoreMoved,
        StoreReplaced,
        StoreUnusable,
        TooLarge,
        TurnOpen,
        Unavailable,
        WalLost,
    )
    from clew.store.aliases import Alias
    from clew.store.bindings import Place
    from clew.store.conversation import Conversation
    from clew.store.profile import Profile, Stats
    from clew.store.reader import ConversationReader
    from clew.store.reading import ContextInputs
    from clew.store.store import Store
    from clew.store.store import open_store as open
    from clew.store.turn import TurnHandle
    from clew.store.verify import Problem

__version__ = "0.1.0"

__all__ = [
    "Alias", "Ambiguous", "Appended", "Approval", "Ask", "Attempt", "BatchConflict", "Boundary",
    "Budget", "Busy", "CallPlan", "CallResult", "Cancelled", "Change", "ClewError", "Compaction",
    "Compactor", "Context", "ContextInputs", "ContextTooLarge", "Conversation", "ConversationInfo",
    "ConversationReader", "ConversationSummary", "Corrupt", "Cut", "CutOutcome", "CutOvertaken",
    "Delivered", "Delivery", "DeliveryReport", "Draft", "Ended", "File", "Goal", "Hit", "Image",
    "ImportOvertaken", "InboxFull", "Inline", "InputError", "InvalidCompaction", "InvalidCursor",
    "Job", "JobRight", "KeyReused", "Limits", "ListFilter", "Mark", "Message", "ModelCall",
    "ModelUsage", "NetworkFolder", "NewConversation", "NotFound", "Outcome", "Overtaken", "Page",
    "Part", "Parts", "PendingBoundary", "Place", "Presence", "Problem", "Profile", "Proposal",
    "Quarantined", "ReadOnly", "Reasoning", "Receipt", "Received", "Recorded", "Ref", "Refused",
    "ResetOutcome", "Right", "RightLost", "Role", "SchemaTooNew", "SearchPage", "SearchQuery",
    "SearchStatus", "SearchUnavailable", "Spooled", "Stale", "Stats", "Store", "StoreClosed",
    "StoreError", "StoreFull", "StoreMoved", "StoreReplaced", "StoreUnusable", "Stub", "Subscriber",
    "Summarizer", "SummaryReply", "SummaryRequest", "Text", "Todo", "TooLarge", "ToolCall",
    "ToolResult", "Turn", "TurnEnded", "TurnHandle", "TurnKnown", "TurnOpen", "TurnQueued",
    "Unavailable", "Unknown", "Usage", "UsageRow", "Waiting", "WalLost", "Workspace", "assistant",
    "budget_for", "open", "route_key", "user",
]  # fmt: skip

_HOMES = {
    "clew.compaction.engine": "Compactor",
    "clew.compaction.outcome": "Outcome",
    "clew.compaction.receipt": "Receipt",
    "clew.compaction.summarize": "Summarizer SummaryReply SummaryRequest",
    "clew.context.budget": "Budget budget_for",
    "clew.context.build": "Context",
    "clew.config": "Limits",
    "clew.domain.boundaries": "Boundary DeliveryReport PendingBoundary Subscriber",
    "clew.domain.changes": "Change Mark",
    "clew.domain.compactions": "Attempt Compaction Inline Proposal Ref Stub",
    "clew.domain.conversations": "ConversationInfo ConversationSummary ListFilter NewConversation "
    "Page Workspace",
    "clew.domain.cuts": "Cut CutOutcome",
    "clew.domain.messages": "Appended Draft Message Role Waiting assistant user",
    "clew.domain.notes": "Goal Job JobRight Presence Todo",
    "clew.domain.parts": "File Image Part Parts Reasoning Text ToolCall ToolResult Unknown",
    "clew.domain.routes": "Received ResetOutcome route_key",
    "clew.domain.search": "Hit SearchPage SearchQuery SearchStatus",
    "clew.domain.turns": "Approval Ask CallPlan CallResult Delivered Delivery ModelCall ModelUsage "
    "Recorded Right Turn TurnEnded TurnKnown TurnQueued Usage UsageRow",
    "clew.errors": "Ambiguous BatchConflict Busy Cancelled ClewError ContextTooLarge Corrupt "
    "CutOvertaken Ended ImportOvertaken InboxFull InputError InvalidCompaction "
    "InvalidCursor KeyReused NetworkFolder NotFound Overtaken Quarantined ReadOnly "
    "Refused RightLost SchemaTooNew SearchUnavailable Spooled Stale StoreClosed "
    "StoreError StoreFull StoreMoved StoreReplaced StoreUnusable TooLarge TurnOpen "
    "Unavailable WalLost",
    "clew.store.aliases": "Alias",
    "clew.store.bindings": "Place",
    "clew.store.conversation": "Conversation",
    "clew.store.profile": "Profile Stats",
    "clew.store.reader": "ConversationReader",
    "clew.store.reading": "ContextInputs",
    "clew.store.store": "Store open",
    "clew.store.turn": "TurnHandle",
    "clew.store.verify": "Problem",
}
"""Where each name lives; read when it is first asked for, so that a program, above all the command
line, loads only what it uses."""

_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'clew' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), "open_store" if name == "open" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
