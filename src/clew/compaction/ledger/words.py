"""Words of English that carry no subject, and words that mean the same subject."""

from __future__ import annotations

import re

_STOP = """
a an the of to in on at for and or nor but is are was were be been being am it its it's this that
these those with by from as we i you he she they our your my his her their me us them will would
should can could may might must shall do does did has have had having not no any all each every
both now then than so if about into onto over out up off down just again already still there here
who whom whose which what when where why how while until unless because since also too very more
most less least only own same such per via within without under above below past after before
between during through against please let lets let's make sure ok okay well yes i'm i'd i'll we'll
we're we've you're you'll don't doesn't didn't isn't aren't can't cannot won't shouldn't mustn't
that's there's what's one ones other others another anything everything something anyone everyone
someone nobody else instead never always ever
"""
STOP = frozenset(_STOP.split())
"""Function words: they end a noun phrase and are no part of a subject."""

_VERBS = """
keep put show report let set use make send write run reply answer respond start stop move moved
change changed switch switched update updated raise lower increase decrease reduce bump call
calling called name named want wants prefer prefers need needs require requires get give take
lives live runs hosted listens land lands ships scheduled fixed capped exceed pass stay remain
remains go goes going belongs belong owns handles handling approve approves approved approving
disclose reveal share shared plan planned refer work working works push test deploy rebased based
branched parked deploys remember note treat assume consider try add adds remove create created
becomes became replaced replace renamed rename rotated rotate expires expire pin pinned hits hit
read think know tell say said see look speak talk
"""
VERBS = frozenset(_VERBS.split())
"""Words that end a noun phrase because they are mostly verbs."""

_GENERIC = """
current currently actual new newest latest old older previous prior total overall week weekend
today tomorrow user's users' internally exact value number setting settings option configuration
config quick update correction change reminder note fact rule time times everyone day thing things
state status progress preferred preference reported shown displayed listed given stated
"""
GENERIC = frozenset(_GENERIC.split())
"""Words that say nothing about which of several things is meant."""

_TELLING = """
staging production dev development test testing qa demo local remote primary secondary backup
replica main unit integration smoke read write upload download input output source target import
export client server frontend backend internal external public private inbound outbound upstream
downstream first second third last min minimum max maximum soft hard daily weekly monthly yearly
annual morning evening nightly admin guest root left right top bottom start end old new v1 v2 v3
v4 connect request response login signup parent child north south east west
"""
TELLING = frozenset(_TELLING.split())
"""Words that stand for one of several: what they qualify is never meant without them."""

_SAME = """
project effort initiative programme program
release ship shipping ships shipped
on-call oncall pager
production prod live
repository repo
documentation docs doc
database db
answer answers reply replies response responses
environment env
directory folder
test tests testing
example examples snippet snippets sample samples
report reports
timeout timeouts
expense expenses cost costs spend spending budget
deploy deploys deployment deployments
application app
configuration config
milliseconds ms millisecond
"""
_GROUPS = [tuple(line.split()) for line in _SAME.strip().splitlines()]
SAME = {word: group[0] for group in _GROUPS for word in group}
_GROUP_OF = {word: group for group in _GROUPS for word in group}

CHANGE = re.compile(
    r"\b(?:now|new|no longer|any ?more|instead|from now on|going forward|henceforth|as of|actually|"
    r"updat(?:e|ed)|correction|chang(?:e|ed|es)|moved?|switch(?:ed|ing)?|scratch that|revis\w+|"
    r"replac\w+|rotat\w+|relocat\w+|migrated|shifted|rebased|rather|renam\w+|overrid\w+|"
    r"supersed\w+|retired|previous(?:ly)?|(?:is|are) (?:away|on leave|on vacation|off sick)|"
    r"stepped down|handed over|"
    r"extended|postponed|bump(?:ed)?|raised?|lower(?:ed)?|increas\w+|decreas\w+|reduc\w+|"
    r"became|becomes|took over|takes over|taken over|slipped|pushed (?:back|out|to)|"
    r"brought forward|ignore (?:the|my) (?:earlier|previous|old)|on second thought|"
    r"change of plans?|"
    r"not .{1,30} but|make (?:it|that)|let's do)\b"
)
"""Signs that a statement, in lower case, changes an earlier one."""
MORE = re.compile(
    r"\b(?:also|additional(?:ly)?|in addition|as well|another|besides|on top of that|second|"
    r"secondary|plus|extra|both|alongside|too(?=[.,;!]|$))\b"
)
"""Signs that a statement, in lower case, adds to earlier ones."""
UNSURE = re.compile(
    r"^(?:so |and |but |also,? )?(?:if|when|whenever|unless|suppose|supposing|assuming|imagine|"
    r"in case|what if|as long as|until|once|(?:just |only )?for (?:just |only )?this (?!is\b|was\b|"
    r"project|repo|codebase|conversation|session|chat|app|team|branch|release|company)(?:one )?\w+)"
    r"\b|"
    r"\b(?:might|could(?! you)|maybe|perhaps|probably|possibly|consider|considering|"
    r"thinking (?:of|about)|propos\w+|suggest\w*|wonder\w*|would be|hypothetical\w*|"
    r"for example|e\.g\.|what if|if we|just (?:this )?once|this once|this time only)\b"
)
"""Signs that a clause, in lower case, supposes, proposes, makes conditions or is about one thing
only: then it claims and replaces nothing."""
DENIES = re.compile(
    r"\b(?:never|do not|don'?t|not|no longer|avoid|without|stop|instead of|rather than|isn't|"
    r"aren't|wasn't|won't|shouldn't|mustn't|cannot|can't|nor|neither)\b",
    re.I,
)
"""Signs that what follows is not so, or is not to be."""
CHATTER = re.compile(
    r"(?:(?:never ?mind|ok(?:ay)?|yes|yep|yeah|sure|thanks?|thank you|thx|great|perfect|nice|"
    r"cool|good|done|"
    r"noted|understood|acknowledged|got it|will do|sounds good|alright|right|no|hi|hello|hey|"
    r"please|continue|continuing|go on|go ahead|proceed|recorded|on it|and|with the plan|lol|"
    r"i|for|that|the|it|you|very|much|so|all|is)\b[\s.,!?:;-]*)+",
    re.I,
)


def fold(word: str) -> str:
    """A word of a subject, lower case, without its plural, as its group's first word."""
    word = word.lower().replace("’", "'").removesuffix("'s").removesuffix("'")
    if word in SAME:
        return SAME[word]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    return SAME.get(word, word)


def related(word: str) -> tuple[str, ...]:
    """Other words for the same subject, for a search that should find them too."""
    word = word.lower()
    return tuple(other for other in _GROUP_OF.get(word, ()) if other != word)


def is_chatter(text: str) -> bool:
    """Whether a short text only acknowledges."""
    return len(text) < 90 and CHATTER.fullmatch(text.strip()) is not None
