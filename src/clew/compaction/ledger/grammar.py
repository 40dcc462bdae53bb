"""The grammar of kinds: which forms of English make a clause a rule, a request, a decision,
something left open, a statement of fact, or none of these.

A pattern is written as lines of alternatives; a line break stands for "or".
"""

from __future__ import annotations

import re


def any_of(lines: str, before: str = r"\b", after: str = r"\b") -> re.Pattern[str]:
    """One expression for all alternatives of these lines, for text in lower case: one that had to
    take both cases would be three times as slow."""
    alternatives = "|".join(line.strip() for line in lines.strip().splitlines())
    return re.compile(f"{before}(?:{alternatives}){after}")


_ONLY = r"""
    ^only|only (?:use|run|reply|answer|write|touch|change|edit|commit|push|test|read|respond)
    only (?:when|if|after|with|in|ever)|\w only(?=[,.;:!]|$)|(?:may|can|must|should|shall|will) only
"""
_WE = "it|i|we|you"
_DONT = r"""
    (?<!i )(?<!we )(?<!they )(?<!you )don'?t(?! (?:think|know|understand|see|care|mind)\b)
    do not(?! (?:think|know|understand|see))
"""
HARD = any_of(rf"""
    never|always|must(?:n't)?|from now on|for the rest of|under no circumstances|at all times
    {_DONT.strip()}
    {_ONLY.strip()}
    forbidden|prohibited|not allowed|off[- ]limits|no exceptions
    (?:try|want|need|sure|careful|like) to avoid|(?<!to )avoid|refrain|throughout|escalate
    whenever|every (?:reply|answer|response|message|time)|before you|when you|when in doubt|unless
    without \w+|(?:stay|keep|hands) (?:out|away|off|clear)
    (?<![\w,] )(?:nothing|nobody|no one) (?!is wrong|works|happen)\w+ \w+
    leave (?:\w+ ){{1,4}}(?:alone|untouched|as (?:is|it is|they are))
    (?<![\w,] )(?:keep (?:the|my|our|all|your|every|each)|treat)
    (?<![\w,] )no (?!such|job|one|need|problem|worries|idea|matter|that|the|this|not|{_WE})\w+ \w+
    (?<![\w,] )if [^,?]{{3,80}}, (?:please )?(?:stop|tell|ask|do|leave|use|skip|never|always)
    (?<![\w,] )if [^,?]{{3,80}}, (?:please )?(?:just|let|report|wait|say|then|call|check|make)
    (?<![\w,] )if [^,?]{{3,80}}, (?:please )?(?:prefer|fall|raise|return|keep)
""")  # fmt: skip
"""What forbids or obliges: a rule, however it is asked."""
STANDING = any_of(r"""
    each time|every (?:commit|file|timestamp|number|function|test|report)
    all (?:times|dates|replies|answers|commits|measurements|code|tests|names|files)
    (?:needs?|requires?) (?:\w+ ){0,3}(?:approval|sign-?off|review|permission)
    before (?:each|every|any)|if (?:you|a request|anyone|someone|something)
    remember (?:to|that)|keep (?:that |this |it )?in mind|stick to
    steer clear|no longer|confidential|in no case|at most|no more than|at or below|not exceed
    strictly|mandatory|non-negotiable|shall|may not|ask (?:me )?(?:first|before)|by default
""")  # fmt: skip
"""What makes a rule when it is no request of the moment."""
WEAK = any_of(r"""
    should(?:n't)? (?!be (?:good|fine|ok|okay|able|enough|done|ready)\b)
    ha(?:s|ve) to (?!do with)|is to be|are to be|required|make sure|be sure to|ensure
""", after="")  # fmt: skip
"""What makes a rule when it is said of things in general; else it is how one thing should be."""
_MUST = r"(?:should|ha(?:s|ve) to|is to|are to)"
GENERAL = any_of(rf"""
    all|any|every|each|everyone|everything|anyone|anything|always|never|only|you|your|generally
    (?:repl(?:y|ies)|answers?|responses?|commits?|pull requests?|prs?|tests?) (?:\w+ )?{_MUST}
    (?:names?|messages?|comments?|code|docs) (?:\w+ )?{_MUST}
    nothing|nobody|no(?!,| need)|not|nor|without|at least|by default|in general
    ^(?:\w+ )?\w{{2,}}(?<!s)s (?:should|have to|are to)
""")  # fmt: skip
"""What is said of more than one thing, or of how to work."""
SURE = any_of(
    "every|each|all|any|no|never|always|only|nothing|nobody",
    before=r"^(?:please |also |and |then )*(?:make sure|be sure|ensure) .{0,60}\b",
)
"""An order that is about more than one thing."""
_FIRST = (
    r"(?:i|we)(?:'ve| have| just| also| already| still)* (?!need|want|expect|use)(?:\w{3,}ed|saw|"
    r"got|had|see|think|believe|guess|suppose|assume|found|ran|went|was|wonder)|let me|"
    r"(?:i|we)(?:'ll| will|'m| am) (?!need|want)\w+"
)
REPORT = re.compile(rf"^(?:[\w ]{{1,20}}, |ok |hm+ |so |now |but |and )?(?:{_FIRST})\b", re.I)
"""Somebody tells what they saw, think or do."""
STRONG = any_of(
    "never|always|from now on|whenever|don't|do not|please|you must|you should|forbidden"
)
"""What obliges even in a report: "I think you should never..."."""
_HAPPEN = r"(?:happen|have \w+(?:ed|en))"
COMPLAINT = any_of(rf"""
    (?:that|this|it|which|these) (?:really )?should(?:n't| not| never) (?:ever )?{_HAPPEN}
    (?:i|we)(?:'ll|'ve|'d| will| have| had)? never (?!want|need|like)
""")  # fmt: skip
"""What only sounds like a prohibition: that something went wrong, what somebody never does."""
TASTE = any_of(r"""
    (?:i|we|users?|he|she|they|team|client|customer) (?:\w+ )?(?:prefers?|wants? (?!you\b)|likes?)
    (?:i|we|users?|he|she|they) (?:really )?(?:hates?|dislikes?|expects?)
    (?:i|we|users?) (?:don't|do not|doesn't|does not) (?:want|like|need)
    i'd (?:rather|like|prefer)|prefers?|preference|preferred|would rather|call me|my name is
    (?:reply|answer|respond|speak|talk|explain) (?:\w+ ){0,3}(?:in|with|as|like)
    write (?:every|all|your) (?:\w+ ){0,3}(?:in|with|as|like)
    (?:answers?|replies|responses?|explanations?) (?:\w+ ){0,3}(?:in|short|terse|concise|brief|with)
    (?:keep|make) (?:\w+ ){0,3}(?:answers?|repl(?:y|ies)|responses?|explanations?)
    (?:keep|make) it (?:short|brief|concise)
    end (?:every|each|your|all)|start (?:every|each|your|all)|use (?:metric|imperial|tabs|spaces)
    in (?:metric|imperial)|stick with|please (?:use|keep|avoid|stick|refer|address)
""")  # fmt: skip
"""How somebody likes to have it: a rule as well."""
DECIDED = any_of(r"""
    decid\w+|decision|chosen|agreed|settled on|opted|approved|rejected|plan is|new plan|final answer
    we(?:'ll| will| are going to|'re going to) (?:use|go|keep|drop|switch|stick|ship|skip|do|not)
    going with|go with|(?:we|i)(?:'re| are|'m| am) using|scratch that|instead of|rather than|rebased
    (?:we|i)(?:'ve| have)? (?:now |also )?(?:chose|picked|adopted|use)
    switch(?:ed|ing)? (?:to|from|\w+ \w+ to)|migrat(?:ed|ing) (?:to|from)|moved to|no longer
    renam(?:e|ed|ing) \S+ (?:to|as)|replac(?:e|ed|ing) \S+ (?:with|by)|trade-?off
    let'?s (?:use|go|keep|drop|switch|stick)|root cause|turns out|caused by|because of
    the (?:bug|problem|issue|culprit|cause|reason) (?:is|was)
    does(?: not|n't) work|did(?: not|n't) work|do not retry|dead end|workaround
    (?:i|we)(?:'ve| have)? (?:created|opened|merged|pushed|tagged|released|published|deployed)
    (?:i|we)(?:'ve| have)? (?:branched|installed|configured|bumped|pinned|disabled|enabled)
""")  # fmt: skip
"""What was decided, found out or done for good."""
_OPENERS = (
    r"^(?:(?:ok(?:ay)?|alright|right|so|now|then|and|also|next|first|please|pls|hey|well|cool|"
    r"great|good|nice|yes|no|yeah|hm+|actually|finally|after that|again|just|dude|thanks|perfect|"
    r"hi|hello|lastly|btw)[\s,.!:]+){0,4}"
)
_IMPERATIVES = r"""
    fix|add|implement|write|build|create|make|refactor|investigate|run|find|update|remove|delete|test
    deploy|draft|explain|read|show|check|look|review|open|rename|move|copy|change|modify|replace
    install|set|use|put|give|list|tell|try|undo|revert|commit|push|merge|release|bump|upgrade|clean
    document|describe|summari[sz]e|compare|analy[sz]e|debug|convert|generate|port|split|extract
    translate|plan|prepare|design|start|stop|restart|kill|send|schedule|book|search|figure|ensure
    finish|complete|continue with|enable|disable|configure|migrate|optimi[sz]e|simplify|format|lint
    verify|validate|profile|benchmark|think|adjust|close|answer|count|rebase|cherry-pick
"""
_QUESTION = any_of(
    "can|could|would|will|do|does|did|is|are|was|were|have|has|should|what|why|how|where|when|who|which",
    _OPENERS, r"\b.{0,200}\?",
)  # fmt: skip
_IMPERATIVE = any_of(_IMPERATIVES, _OPENERS)
_REQUEST = any_of(r"""
    please|can you|could you|would you|i need you to|i want you to|i'd like you to|let's|help me
    we (?:still )?need|needs? to be
    (?:^|[,;:] |and )(?:see|find out|figure out|check|look) (?:whether|if|why|how|what|into|at)
""")  # fmt: skip
POLITE = any_of(r"(?:can|could|would|will) you", _OPENERS)
"""A question that is an order."""
TODO = any_of(r"""
    not (?:yet )?done|still (?:need|needs|have|to do|open|missing|failing|fails)|remaining
    follow[- ]?up|awaiting|open (?:question|item|issue|point)s?|unresolved|deferred
    (?:is|are|am|still|we're|i'm) (?:pending|waiting)|blocked (?:on|by)
    pending (?:review|approval|decision|question)s?
""")  # fmt: skip
"""What is left open."""
MARKED = re.compile(r"\b(?:TODO|FIXME)(?=[:(.,]|\s(?:in|at|for|left|is|are|list)\b|$)")
"""A mark of something left open; "a TODO app" has none."""
STATE = any_of(r"""
    current(?:ly)?|next (?:step|up|task)|in progress|steps? \d|phase \d|branch|commit|parked
    unpushed|so far|status|working on|failing|fails|is (?:up|down|broken|green|red)|are done|is done
    is based on
""")  # fmt: skip
"""Where the work stands."""
COPULA = any_of(r"""
    is|are|was|were|owns?|lives?|called|named|designated|runs?|uses?|listens?|belongs?|handles?
    stands for|works? (?:on|with)|has|have|points to|equals|contains|requires|strips?|costs?|takes
    starts|ends|expires?|defaults
""", after=r"\b|[:=] ")  # fmt: skip
"""A statement's verb."""
EXACT = re.compile(r"\d|[\w)]_\w|[a-z][A-Z]|\w-\w+-\w|[/`\"“@#$€£]|\b[A-Z]{2}")
"""Something exact: a number, an identifier, a path, a quotation."""
NARRATED = re.compile(
    r"(?:i'm |we're |i am |we are |still |now )?(?!during|nothing|anything|everything|something|"
    r"according|depending|going|calling|using|working|switching|moving|replacing)[a-z]{3,12}ing "
    r"(?:a|an|the|on|through|some|how|our|my|whether|up|into|about)\b",
    re.I,
)
"""What somebody is doing, told without a finite verb: "Reviewing the queue settings"."""
WORKING = re.compile(
    r"(?:let me|now i|i'll|i will|let's|now let|first,? (?:let|i)|looking at|next,? i|i need to|"
    r"i should|now (?:update|add|fix))\b",
    re.I,
)
"""An agent that says what it does next."""
WITHDRAWN = re.compile(
    r"^(?:(?:oh|ok|no|actually|sorry|hey|wait)[\s,.]+){0,2}(?:never ?mind|forget (?:it|that|about "
    r"(?:it|that))|scratch that|cancel (?:that|it)|stop|ignore (?:that|my last))\b"
    r"[\s.!,]*(?:$|[.!])",
    re.I,
)
"""A request is taken back."""
ANAPHORA = any_of(r"""
    it|this|that|they|them|these|those|its|their|both
    the (?:other|former|latter|same|old|previous|date|earlier) (?:one|ones|code|value)?
    (?:never|do not|don't|please don't|only|must not) (?:\w+ )?(?:it|this|them|that|these|those)
    (?:use|keep|treat|fix|put) (?:\w+ )?(?:it|this|them|that|these|those)
    (?:never|do not|don't|must not|not to) (?:exceed|go (?:over|above|beyond|past)|surpass)
    (?:never|do not|don't|must not|not to) (?:raise|lower|overrun|overshoot)
""", before="^")  # fmt: skip
"""A sentence that means nothing without the one before it."""
FRAGMENT = any_of(r"""
    (?:this is )?an? (?:important|hard|standing|general) \w+|important|note|please note
    for the rest of (?:this|the) \w+|from now on|going forward|one more thing|also|reminder
    heads[- ]up|quick (?:note|update)|fyi|by the way
""", before="^", after="[.:,!]*$")  # fmt: skip
"""A sentence that only introduces the next."""


def asks(low: str) -> bool:
    """Whether a clause, in lower case, asks for something to be done or told now."""
    return (
        low.rstrip().endswith("?")
        or _REQUEST.search(low) is not None
        or _IMPERATIVE.search(low) is not None
        or _QUESTION.search(low) is not None
    )


def left_open(text: str, low: str) -> bool:
    """Whether a clause (`low`: in lower case) says that something is left open."""
    return TODO.search(low) is not None or MARKED.search(text) is not None
