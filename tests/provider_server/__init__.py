"""A scripted OpenAI-compatible server over loopback HTTP: it answers what a test says, and checks
what it is asked.

    with ProviderServer([say("Hello."), use(call("find", {"q": 1})), FAIL["429"]]) as server:
        ...                          # base_url = server.base_url, any key
        server.requests[0].json      # what was sent; .headers, .path, .messages
        server.check()               # violations of the protocol or of the prefix, as one failure

It runs in a thread, so processes that a test starts reach it as well. It serves
`POST /v1/chat/completions` and `/v1/responses` (streamed and plain) and `GET /v1/models`;
`imitate="ollama"`, `"llamacpp"`, `"lmstudio"` or `"vllm"` adds what those servers answer besides.

A script is a list, or a function of the `Recorded` request; a list that is used up is a violation.
`server.script = ...` replaces it at any time. Side requests (titles, summaries) take from the list,
too: use a function where they come, and look at `request.messages`.

Answers (answers.py)
    say("text", reasoning=..., cached=..., delay=0.01, piece=8, gate=event, hold_at=1)
        `piece` characters come at once; before piece `hold_at` the stream waits for `gate`, a
        threading.Event. `server.requests[n].aborted` is set when the client hangs up meanwhile.
    use(call("name", {...}), call(...), text="")      tool calls, their arguments in pieces
    refuse("I cannot.")                                  the field `refusal`
    say("half", fault="cut")        the connection breaks after half of the pieces
        "cut-done": after finish_reason; "no-finish": a clean end without finish_reason or [DONE];
        "done-only": [DONE] without finish_reason; "malformed": a broken chunk (plain: a broken
        body); "empty": a stream without a chunk; "error": an `error` object in the stream;
        "silent": the half, and then nothing; "html": a web page with status 200
    FAIL[...]: "429", "429-ms", "429-bare", "429-text", "429-large", "quota", "402", "500", "503",
        "401", "403", "404", "400", "html", "overflow-openai", "overflow-llamacpp",
        "overflow-vllm", "overflow-ollama", "overflow-lmstudio", ... (failures.py)
    HANG                            never answers

Prefix: of two requests with one scope (`prompt_cache_key`, or a header of `affinity_headers`) the
second must begin with the first up to the start of its last message, with equal tools and prompt.
Where it does not, `server.breaks` gets a `Break`; `server.check()` fails if there are more than
`server.expect_break()` allowed, `server.check(breaks=20)` if there are not exactly so many. What
has no scope is not compared.

`server.wait_for(3)` waits until the third request is there; `server.pause()` refuses connections
until `server.resume()`.
"""

from provider_server.answers import HANG, Answer, Call, Hang, call, refuse, say, use
from provider_server.failures import FAIL, Failure
from provider_server.server import ProviderServer, Recorded, Script

__all__ = [
    "FAIL",
    "HANG",
    "Answer",
    "Call",
    "Failure",
    "Hang",
    "ProviderServer",
    "Recorded",
    "Script",
    "call",
    "refuse",
    "say",
    "use",
]
