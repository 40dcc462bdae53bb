"""What stands in a spool: bytes that come back, and bytes that are not taken for a record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.config import Limits
from clew.domain.messages import Draft, Role
from clew.domain.parts import File, Image, Text, ToolResult
from clew.domain.turns import CallResult, Usage
from clew.store.codec import Codec
from clew.store.drafts import prepare
from clew.store.kit import Kit
from clew.store.spool.messages import drafts, spooled, unlimited
from clew.store.spool.record import (
    BYTES,
    FIRST,
    HEADER,
    STATE_AT,
    Record,
    Spooled,
    epoch_of,
    frame,
    pack,
    scan,
    slot,
    unpack,
)
from clew.testing.clock import FakeClock, seeded_ids

EPOCH, OTHER = b"\x01" * 8, b"\x02" * 8
CLOCK = FakeClock()
KIT = Kit(Codec(), seeded_ids(CLOCK), CLOCK, Limits())

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
keys = st.none() | st.text("abc:1", min_size=1, max_size=8)
parts = st.lists(
    st.builds(Text, st.text(max_size=2000))
    | st.builds(Image, data=st.binary(max_size=300))
    | st.builds(File, data=st.binary(max_size=300), name=st.none() | texts)
    | st.builds(
        ToolResult, call_id=st.just("c"),
        content=st.lists(st.builds(Image, data=st.binary(max_size=50)), max_size=2).map(tuple),
    ),
    min_size=1, max_size=3,
).map(tuple)  # fmt: skip
messages = st.builds(
    Draft, role=st.sampled_from(Role), parts=parts, key=keys,
    meta=st.none() | st.dictionaries(texts, st.integers() | st.text(max_size=9), max_size=2),
    tokens=st.none() | st.integers(0, 9), replaces=st.none() | st.integers(1, 9),
    author=st.none() | st.text("ab", min_size=1, max_size=5),
)  # fmt: skip


def record_of(*given: Draft, head: int = 0) -> Record:
    ready = prepare(KIT, given)
    return Record(store="s", profile="p", conversation="c", messages=spooled(KIT.codec, ready),
                  head=head)  # fmt: skip


@given(messages, st.integers(0, 9))
def test_a_message_comes_back_as_it_was(draft: Draft, head: int) -> None:
    """S40.10 What went into the spool is prepared again to the same columns and the same bytes."""
    (before,) = prepare(KIT, [draft])
    record = Record(store="s", profile="p", conversation="c", head=head,
                    messages=spooled(KIT.codec, (before,)))  # fmt: skip
    back = unpack(pack(record))
    assert back == record
    (after,) = prepare(unlimited(KIT), drafts(back.messages, head))
    assert KIT.codec.parts(after.parts) == KIT.codec.parts(before.parts)
    same = before._replace(parts=after.parts, minted=False, after=head)
    assert after == same


def test_what_a_step_took_is_kept() -> None:
    result = CallResult(usage=Usage(input=3, output=4), cost=0.5)
    record = Record(store="s", profile="p", conversation="c", messages=(), fence=3, turn=2, call=1,
                    result=result)  # fmt: skip
    assert unpack(pack(record)) == record


def three() -> tuple[bytes, list[int]]:
    """Three records, and where each ends."""
    data, ends = b"", list[int]()
    for number in (1, 2, 3):
        text = "words " * number * 20
        data += frame(pack(record_of(Draft(role=Role.USER, parts=(Text(text),)))), number, EPOCH)
        ends.append(len(data))
    return data, ends


def test_a_record_that_is_cut_off_at_any_byte_is_none_and_those_before_it_are() -> None:
    """S40.1 The file ends in the middle of a record, wherever: the end, not fatal, and told."""
    data, ends = three()
    for length in range(ends[1], ends[2]):
        found = scan(data[:length] + bytes(100), EPOCH)
        if found.end == FIRST + ends[2]:  # what was cut off is padding, of zeros
            assert not data[length:].strip(b"\0")
            continue
        assert len(found.entries) == 2
        assert found.end == FIRST + ends[1]
        assert found.torn is bool(data[ends[1] : length].strip(b"\0")[:HEADER])


def test_a_wrong_byte_anywhere_in_the_last_record_is_seen() -> None:
    data, ends = three()
    for at in range(ends[1], ends[2]):
        broken = data[:at] + bytes((data[at] ^ 0x41,)) + data[at + 1 :]
        found = scan(broken + bytes(100), EPOCH)
        padding = at - ends[1] > STATE_AT and (at - ends[1] < HEADER or not data[at:].strip(b"\0"))
        if at - ends[1] == STATE_AT or padding:
            assert [e.record for e in found.entries] == [
                e.record for e in scan(data, EPOCH).entries
            ]
        else:
            assert len(found.entries) == 2, at
            assert found.torn


def test_a_damaged_record_does_not_hide_the_one_behind_it() -> None:
    data, ends = three()
    for at in range(ends[0] + HEADER, ends[1]):
        broken = data[:at] + bytes((data[at] ^ 0x41,)) + data[at + 1 :]
        states = [e.state for e in scan(broken, EPOCH).entries]
        if data[at : ends[1]].strip(b"\0"):
            assert states == ["pending", "damaged", "pending"]


def test_bytes_of_another_epoch_are_no_records() -> None:
    """S40.1 What stood there before the spool was emptied is never read as a message."""
    data, _ = three()
    assert scan(data, OTHER).entries == ()
    mixed = frame(pack(record_of(Draft(role=Role.USER, parts=(Text("x"),)))), 1, OTHER)
    assert len(scan(mixed + data[len(mixed) :], OTHER).entries) == 1


def test_a_state_is_one_byte() -> None:
    data, ends = three()
    for state, byte in BYTES.items():
        at = ends[0] + STATE_AT
        found = scan(data[:at] + byte + data[at + 1 :], EPOCH)
        assert [e.state for e in found.entries] == ["pending", state, "pending"]


@given(st.integers(0, 43), st.integers(1, 255))
def test_a_torn_change_of_epoch_leaves_the_one_before(at: int, change: int) -> None:
    old, new = slot(4, EPOCH), slot(5, OTHER)
    head = old.ljust(512, b"\0") + new.ljust(512, b"\0")
    assert epoch_of(head) == (5, OTHER)
    if at < len(new):
        torn = head[: 512 + at] + bytes((head[512 + at] ^ change,)) + head[513 + at :]
        assert epoch_of(torn) == (4, EPOCH)
    assert epoch_of(bytes(4096)) is None


@pytest.mark.parametrize("junk", [b"", b"x", b"\x28\xb5\x2f\xfd" + bytes(20)])
def test_what_is_no_payload_is_refused(junk: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        unpack(junk)


def test_an_empty_message_takes_little() -> None:
    assert len(frame(pack(record_of(Draft(role=Role.USER, parts=(Text("hi"),)))), 1, EPOCH)) < 250
    assert Spooled(uid=b"", role=1, parts=b"", at=0).blobs == ()
