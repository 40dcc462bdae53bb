"""What an erasure does with every column that can hold a text or bytes: one list, for people
(docs/operating/erasure.md) and for a test that fails when the schema has a column that is not here.
"""

from __future__ import annotations

from typing import NamedTuple


class Fate(NamedTuple):
    """What becomes of some columns."""

    what: str
    columns: frozenset[str]
    """table.column"""


def _fate(what: str, columns: str) -> Fate:
    return Fate(what, frozenset(columns.split()))


FATES = {
    "erased": _fate(
        "what was said goes, the row stays",
        "attempt.summary_error boundary.error compaction.body compaction.receipt inbox.author "
        "inbox.key inbox.meta inbox.parts message.api_group message.author message.key "
        "message.meta message.parts model_call.error model_call.partial model_call.settings "
        "turn.error turn.key",
    ),
    "gone": _fate(
        "the row or value goes with the last that names it",
        "blob.bytes blob.hash prompt.hash prompt.text prompt_use.hash toolset.hash "
        "toolset.names toolset.schemas",
    ),
    "whole": _fate(
        "of a conversation that is erased as a whole: cleared, or the row goes",
        "conversation.cwd conversation.git_branch conversation.git_root conversation.meta "
        "conversation.prompt_hash conversation.toolset_hash model_call.prompt_hash "
        "model_call.toolset_hash outbox.route",
    ),
    "quoted": _fate(
        "cleared where it quotes, always in a whole one",
        "conversation.title_user goal.text presence.label presence.owner todo.text",
    ),
    "anew": _fate(
        "made again from what stays",
        "conversation.preview conversation.title_derived conversation.title_llm "
        "dictionary.bytes search_text.words",
    ),
    "of_turn": _fate(
        "of the turns of what goes",
        "outbox.error outbox.payload",
    ),
    "person": _fate(
        "where it names the person, and in a whole one",
        "alias.conversation alias.foreign_id alias.profile alias.source approval.by "
        "binding.conversation binding.key binding.profile binding.source cut.by "
        "inbound.account inbound.conversation inbound.key inbound.profile inbound.result "
        "inbound.source",
    ),
    "kept": _fate(
        "ids, states and words of clew's own, which nobody said",
        "alias.kind alias.state approval.state attempt.state attempt.trigger attempt.uid "
        "attempt.verdict boundary.kind change.detail change.kind compaction.cuts "
        "compaction.kind conversation.affinity conversation.attribution "
        "conversation.end_reason conversation.holder conversation.kind cut.uid "
        "end_reason.reason goal.state inbox.state inbox.uid job.holder job.name message.uid "
        "meta.name meta.value model_call.prefix_hash model_call.purpose model_call.state "
        "outbox.state todo.state turn.state turn.uid",
    ),
    "named": _fate(
        "names that programs give: put nobody's data into them",
        "approval.call_id approval.name attempt.model boundary.from_id boundary.profile "
        "boundary.reason boundary.source boundary.subscriber boundary.to_id "
        "change.conversation change.profile conversation.id conversation.model "
        "conversation.profile conversation.source conversation_id.id conversation_id.profile "
        "model_call.api_group model_call.model search_mark.profile search_mark.stamp "
        "search_mark.store_id subscriber.name subscriber.profile",
    ),
}
