"""Search words: one rule for the index and for the scan; nothing a person types is an error."""

from __future__ import annotations

import sys
from typing import Any

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.domain.search import SearchQuery
from clew.errors import InputError
from clew.store.search.snippet import highlight
from clew.store.search.text import QUERY_LIMIT, matches, may_match, parse, to_match
from clew.store.search.words import GAP, fold, parts, segment

# ------------------------------------------------------------------ strategies

_LATIN = (
    "the error Error ERROR fetch rows fetch_rows_42 fetchRows fetch-rows fetch.rows v2 iPhone15 "
    "getHTTPResponse HTTPResponse http response getHttp utf8 sha256 9f86d081884c7d65 x² ½ ™ "
    "naïve naive NAÏVE Straße STRASSE strasse résumé e\u0301te\u0301 ＡＢＣ abc ａｂｃ ﬁle file"
)
_SPACELESS = (
    "修改youer服务端的计划 youer 服务 服 务端 你好 世界 你好世界 ひらがな カタカナ ｶﾀｶﾅ "
    "ｶﾞ か\u3099 が か 人々 한국어 한국 국어 \u1112\u1161\u11ab ㅋㅋㅋ 𠀀𠀁 𠀁 ที่นี่ นี่"
)
_OTHERS = (
    "हिन्दी में кириллица Кириллица й и\u0306 за́мок замок ΟΔΟΣ οδος OR AND NOT NEAR 🎉 👍🏽 great🎉 "
    "-> {} \x00 \ud800 \ue000 \ue003p a* ab* *x \" ' ( ) : ^ + - -- -x -服 body: rowid"
)
WORDS = " ".join((_LATIN, _SPACELESS, _OTHERS)).split(" ")
GLUE = ["", " ", " ", "\n", "_", "-", ".", ",", "，", "、", "\u3000", "/", '"', "*", "\x00"]

texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GLUE)), max_size=12).map(
    lambda found: "".join(word + glue for word, glue in found)
)
wild = st.text(max_size=40)
any_text = texts | wild
HAN = "服务端的计划修改文件中国人民a b，。x1"
han_texts = st.text(alphabet=HAN, max_size=30)


def index_of(bodies: list[str]) -> Any:
    db: Any = apsw.Connection(":memory:")
    db.execute(
        "CREATE VIRTUAL TABLE words USING fts5("
        "body, content='', contentless_delete=1, detail=none, tokenize='ascii')"
    )
    for number, body in enumerate(bodies):
        db.execute("INSERT INTO words(rowid, body) VALUES (?, ?)", (number, segment(body)))
    return db


def index_finds(db: Any, bodies: list[str], query: str) -> set[int] | None:
    """What a search with the index finds: the rows it names, matched if the query is loose."""
    parsed = parse(query)
    match = to_match(parsed)
    if match is None:
        return None
    rows = db.execute("SELECT rowid FROM words WHERE words MATCH ?", (match,)).fetchall()
    named = {row[0] for row in rows}
    return {n for n in named if matches(parsed, bodies[n])} if parsed.loose else named


def scan_finds(bodies: list[str], query: str) -> set[int]:
    parsed = parse(query)
    return {number for number, body in enumerate(bodies) if matches(parsed, body)}


def found(query: str, text: str) -> bool:
    """Whether both ways find it; they must agree."""
    scanned = scan_finds([text], query) == {0}
    indexed = index_finds(index_of([text]), [text], query)
    assert indexed is None or (indexed == {0}) == scanned
    return scanned


# ------------------------------------------------------------------ the property


@given(st.lists(any_text, min_size=1, max_size=6), st.lists(any_text, min_size=1, max_size=4))
@example(["修改youer服务端的计划", "服务 端的"], ["youer", "服务端", '"服务 端的"', "端 的"])
@example(["of the", "the of"], ['the -"the of"', '-"of the"', '"the of" OR "of the"'])
@example(["getHTTPResponse fetchRows"], ['"response fetch"', '"http response"', "getHttp*"])
def test_index_and_scan_find_the_same(bodies: list[str], queries: list[str]):
    db = index_of(bodies)
    for query in queries:
        indexed = index_finds(db, bodies, query)
        if indexed is not None:
            assert indexed == scan_finds(bodies, query), (query, to_match(parse(query)))


@given(han_texts, st.text(alphabet="服务端的计划修改文件中国人民", min_size=1, max_size=5))
def test_spaceless_scripts_are_found_as_substrings(text: str, query: str):
    assert found(query, text) == (query in text)


@given(any_text, any_text)
def test_the_quick_test_never_loses_a_hit(text: str, query: str):
    parsed = parse(query)
    if matches(parsed, text):
        assert may_match(parsed, fold(text))


@given(any_text)
def test_segments_are_storable_and_stable(text: str):
    words = segment(text)
    words.encode("utf-8")
    assert "\0" not in words
    assert words == " ".join(words.split(" "))
    assert segment(text.swapcase().swapcase()) is not None


@given(st.sampled_from([w for w in WORDS if parse(w).all and "-" not in w and '"' not in w]))
def test_each_word_finds_itself(word: str):
    if word not in ("OR", "AND"):
        assert found(word, f"before, {word}; after")
        assert found(f'"{word}"', f"before {word} after")


@given(any_text)
def test_nothing_typed_is_an_error(text: str):
    parsed = parse(text)
    match = to_match(parsed)
    if match is not None:
        index_of(["x"]).execute("SELECT rowid FROM words WHERE words MATCH ?", (match,)).fetchall()
    matches(parsed, text)
    highlight(parsed, text)


# ------------------------------------------------------------------ known failures elsewhere


def test_b79_two_characters_inside_longer_runs_are_all_found():
    bodies = [f"{'前' * n}会议记录{'后' * (5 - n)}" for n in range(6)] + ["会 议", "议会", "记录"]
    db = index_of(bodies)
    for query in ("会议", "议", "会", "议记", "会议记录", "录"):
        wanted = {n for n, body in enumerate(bodies) if query in body}
        assert index_finds(db, bodies, query) == scan_finds(bodies, query) == wanted


def test_b80_latin_glued_to_chinese_is_a_word():
    text = "修改youer服务端的计划"
    for query in (
        "youer",
        "YOUER",
        "修改",
        "服务端",
        "改youer",
        "youer服",
        "修改youer服务端的计划",
        "的计划",
        "划",
    ):
        assert found(query, text), query
    for query in ("you", "改服", "youer端", "修youer"):
        assert not found(query, text), query


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("fetch_rows", "fetch_rows_42"),
        ("fetch", "fetch_rows_42"),
        ("rows", "fetch_rows_42"),
        ("42", "fetch_rows_42"),
        ("fetch_rows_42", "call fetch_rows_42()"),
        ("http", "getHTTPResponse"),
        ("response", "getHTTPResponse"),
        ("getHTTPResponse", "x.getHTTPResponse(y)"),
        ("gethttpresponse", "getHTTPResponse"),
        ("GetHttpResponse", "gethttpresponse"),
        ("HTTPResponse", "getHTTPResponse"),
        ("fetch_rows", "fetchRows"),
        ("fetchRows", "fetch_rows"),
        ("phone", "iPhone15"),
        ("sha", "sha256"),
        ("256", "sha256"),
        ("backend", "src/clew/store/backend.py"),
        ("store/backend.py", "src/clew/store/backend.py"),
        ("dry-run", "--dry-run"),
        ("--dry-run", "dry_run"),
        ("getHTTP*", "getHTTPResponse"),
        ("respon*", "getHTTPResponse"),
        ('"using youtube today"', "using YouTube today"),
        ("naive", "naïve"),
        ("naïve", "naive"),
        ("strasse", "STRAßE"),
        ("istanbul", "İSTANBUL"),
        ("abc", "ＡＢＣ"),
        ("ガ", "ｶﾞ"),
        ("が", "か\u3099"),
        ("한", "\u1112\u1161\u11ab국어"),
        ("file", "ﬁle"),
        ("замок", "за́мок"),
        ("οδος", "ΟΔΟΣ"),
        ("🎉", "great🎉!"),
        ("clew", "Clew™"),
        ("นี่", "ที่นี่"),
        ("𠀁", "𠀀𠀁𠀂"),
    ],
)
def test_found(query: str, text: str):
    assert found(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("http", "gethttpresponse"),
        ("fetchrows", "fetch rows"),
        ('"rows get"', "fetchRows getHTTPResponse"),
        ("か", "が"),
        ("и", "й"),
        ("कल", "कुल"),
        ("9f86", "9f86d081884c7d65"),
        ("e", "été"),
        ("服务端", "服务 端"),
        ("->", "a -> b"),
        ("error -error", "error"),
    ],
)
def test_not_found(query: str, text: str):
    assert not found(query, text)


# ------------------------------------------------------------------ the language


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("a b", '("a") AND ("b")'),
        ("a OR b c", '("a" OR "b") AND ("c")'),
        ("a OR b OR c", '("a" OR "b" OR "c")'),
        ("a AND b", '("a") AND ("b")'),
        ('"a b" c*', '(("a" AND "b")) AND ("c"*)'),
        ('"a b"*', '(("b"* AND "a"))'),
        ("a -b", '(("a")) NOT ("b")'),
        ('a -"b c"', '("a")'),
        ("a -b -服", '(("a")) NOT ("b" OR "服"*)'),
        ("a -b -c", '(("a")) NOT ("b" OR "c")'),
        ('"never closed', '(("closed" AND "never"))'),
        ("a OR", '("a")'),
        ("OR a", '("a")'),
        ("OR", '("or")'),
        ("a OR -b", '(("a")) NOT ("b")'),
        ("--force", '("force")'),
        ("a a a", '("a")'),
        ("“a b”", '(("a" AND "b"))'),
        ('a" OR rowid:1 --', '("a") AND (("rowid" AND "or" AND "1"))'),
        ("NEAR(a b)", '(("near" AND "a")) AND ("b")'),
        ("服", '("服"*)'),
        ("服务端*", '(("服务" AND "务端"))'),
        ("-a", None),
        ("", None),
        ("->", None),
    ],
)
def test_queries(query: str, match: str | None):
    assert to_match(parse(query)) == match


def test_an_empty_text_matches_everything_and_one_without_words_nothing():
    assert matches(parse(""), "anything")
    assert matches(parse("  "), "")
    assert not matches(parse("->"), "a -> b")
    assert matches(parse("-b"), "a")
    assert not matches(parse("-b"), "a b")


def test_private_characters_cannot_reach_the_groups_and_facets():
    assert parse(f"a{GAP}b \ue003p").all == parse('"a b" p').all


@pytest.mark.parametrize(
    "query",
    [
        " ".join(f"w{n}" for n in range(800)),
        " OR ".join(f"w{n}" for n in range(450)),
        "x " + " ".join(f"-w{n}" for n in range(700)),
        "服" * QUERY_LIMIT,
        " ".join(chr(0x4E00 + n) for n in range(2000)),
        '"' + "a b " * 1000,
        '"' * QUERY_LIMIT,
        "aB" * 2000,
    ],
)
def test_the_longest_queries_run(query: str):
    found(query[:QUERY_LIMIT], "x 服务 w1")


def test_longer_queries_are_refused():
    with pytest.raises(InputError, match="4,096"):
        parse("a" * (QUERY_LIMIT + 1))


@pytest.mark.parametrize("limit", [0, 201, -1])
def test_limits_are_checked(limit: int):
    with pytest.raises(InputError):
        SearchQuery(text="a", limit=limit)


@pytest.mark.parametrize("field", ["tool", "source", "model", "project", "git_branch"])
@pytest.mark.parametrize("value", ["", "\ud800", "a\0b"])
def test_filters_that_no_row_can_have_are_refused(field: str, value: str):
    with pytest.raises(InputError, match=field):
        SearchQuery(**{field: value})  # type: ignore


# ------------------------------------------------------------------ folding


def test_folding_covers_what_the_tokenizer_of_sqlite_folds():
    """Every character of which unicode61 (remove_diacritics 2) makes an ASCII letter."""
    tokenizer = apsw.Connection(":memory:").fts5_tokenizer("unicode61", ["remove_diacritics", "2"])
    folded = 0
    for code in range(0x80, 0x2FFFF):
        character = chr(code)
        if not character.isalpha():
            continue
        tokens = tokenizer(f"q{character}q".encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None,
                           include_offsets=False, include_colocated=False)  # fmt: skip
        if len(tokens) == 1 and str(tokens[0]).isascii():
            assert segment(f"q{character}q").split(f" {GAP} ")[0] == tokens[0], hex(code)
            folded += 1
    assert folded > 400


def test_no_character_becomes_a_separator_when_its_case_is_folded():
    """Else the index would cut a word where the scan does not."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if character.isalnum() and not character.isascii():
            words = segment(character)
            assert all(not c.isascii() or c.isalnum() or c == " " for c in words), hex(code)


@given(any_text)
def test_folding_twice_changes_nothing_that_counts(text: str):
    assert segment(fold(text)).split(GAP)[0].strip() == segment(text).split(GAP)[0].strip()


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("getHTTPResponse", ("get", "http", "response")),
        ("fetchRows2D", ("fetch", "rows", "2", "d")),
        ("iPhone15", ("i", "phone", "15")),
        ("utf8", ("utf", "8")),
        ("v2", ()),
        ("x86", ()),
        ("plain", ()),
        ("CONSTANT", ()),
        ("9f86d081884c7d65", ()),
        ("9aXk2LmPqRs", ()),
        ("a" * 30 + "B" + "c" * 30, ()),
    ],
)
def test_parts_of_identifiers(word: str, expected: tuple[str, ...]):
    assert parts(word) == expected


# ------------------------------------------------------------------ snippets


def shown(query: str, text: str, width: int = 60) -> str:
    pieces = highlight(parse(query), text, width)
    return "".join(f"[{piece}]" if marked else piece for piece, marked in pieces)


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("youer", "修改youer服务端的计划", "修改[youer]服务端的计划"),
        ("务端", "修改youer服务端的计划", "修改youer服[务端]的计划"),
        ("http", "x getHTTPResponse", "x get[HTTP]Response"),
        ("fetch_ro*", "see fetch_rows_42.", "see [fetch_ro]ws_42."),
        ("strasse", "die Straße ist naß", "die [Straße] ist naß"),
        ("ete", "un e\u0301te\u0301 chaud", "un [e\u0301te\u0301] chaud"),
        ("a b", "b\x1b[31m\n\n\ta \u202ec", "[b] [31m [a] c"),
        ("zebra", "no animal here", "no animal here"),
        ("", "first\nline", "first line"),
        ("the", "The other the", "[The] other [the]"),
        ("x -y", "x z", "[x] z"),
    ],
)
def test_snippets(query: str, text: str, expected: str):
    assert shown(query, text) == expected


def test_a_snippet_shows_the_place_with_most_words():
    text = "alpha " + "filler " * 60 + "beta and alpha and gamma " + "filler " * 60
    snippet = shown("alpha beta gamma", text)
    assert "[beta] and [alpha] and [gamma]" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")


def test_a_snippet_of_a_huge_text_is_found_and_short():
    text = "x " * 50_000 + "needle in it " + "é " * 100
    assert "[needle] in it" in shown("needle", text)
    assert len(shown("needle", text)) < 100


@given(any_text, any_text, st.integers(10, 200))
def test_snippets_are_safe_to_print(query: str, text: str, width: int):
    pieces = highlight(parse(query), text, width)
    plain = "".join(piece for piece, _ in pieces)
    plain.encode("utf-8")
    assert not set(plain) & set("\x00\x1b\n\r\u2028\u202e")
    assert all(piece for piece, _ in pieces)


@given(han_texts, st.text(alphabet="服务端的计划修改", min_size=1, max_size=3))
def test_every_hit_has_a_highlight(text: str, query: str):
    parsed = parse(query)
    if matches(parsed, text):
        marked = [piece for piece, on in highlight(parsed, text) if on]
        assert query in marked
