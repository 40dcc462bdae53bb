"""The style sheet of the HTML page, and its name for the page's security policy."""

from __future__ import annotations

import base64
import hashlib

CSS = """
:root { color-scheme: light dark; --back: #fbfaf8; --text: #22211f; --dim: #6e6a63;
  --line: #e4e0d8; --card: #fff; --user: #0b5cad; --assistant: #1d7a43; --tool: #6a4bb0;
  --system: #a05a00; --code: #f3f1ec; --error: #b3261e; --mark: #fff3bf; }
@media (prefers-color-scheme: dark) { :root { --back: #17181a; --text: #e6e3dd; --dim: #9a968d;
  --line: #313338; --card: #1f2124; --user: #7cb7ff; --assistant: #7fd6a0; --tool: #c0a6ff;
  --system: #f0b35f; --code: #16181b; --error: #ff8a80; --mark: #4a4220; } }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main, header, nav { max-width: 54rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .6rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0 0 1rem;
  color: var(--dim); font-size: .9rem; }
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; }
a { color: inherit; }
nav details, .prompt { border: 1px solid var(--line); border-radius: 8px; background: var(--card);
  padding: .5rem .8rem; margin-bottom: 1rem; }
nav ol { list-style: none; margin: .5rem 0 0; padding: 0; max-height: 24rem; overflow: auto;
  font-size: .9rem; }
nav li { padding: .1rem 0; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
nav li a { text-decoration: none; } nav li a:hover,
nav li a[href$=".html"] { text-decoration: underline; }
nav .note { color: var(--dim); font-style: italic; white-space: normal; overflow-wrap: anywhere; }
article { content-visibility: auto; contain-intrinsic-size: auto 12rem; margin: 0 0 1rem;
  padding: .7rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-inline-start: 4px solid var(--role, var(--line)); border-radius: 8px; }
article.user { --role: var(--user); } article.assistant { --role: var(--assistant); }
article.tool { --role: var(--tool); } article.system, article.developer { --role: var(--system); }
article:target { background: var(--mark); }
article > h2 { font-size: .85rem; font-weight: 600; margin: 0 0 .4rem; color: var(--dim);
  display: flex; gap: .6rem; flex-wrap: wrap; align-items: baseline; }
h2 .who { color: var(--role); } h2 a { text-decoration: none; color: var(--dim); }
h2 time { margin-inline-start: auto; font-weight: 400; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; }
p, li, th, td, h3, h4, h5, h6 { unicode-bidi: plaintext; text-align: start; }
p, ul, ol, blockquote, table, h3, h4, h5, h6 { margin: .5rem 0; overflow-wrap: anywhere; }
h3, h4, h5, h6 { font-size: 1.05rem; line-height: 1.3; margin-top: .9rem; }
h3 { font-size: 1.2rem; }
li p { margin: .2rem 0; } main ul, main ol { padding-inline-start: 1.6rem; }
blockquote { margin-inline: 0; padding-inline-start: .9rem; color: var(--dim);
  border-inline-start: 3px solid var(--line); }
table { border-collapse: collapse; display: block; max-width: 100%; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; vertical-align: top;
  overflow-wrap: break-word; }
th.center, td.center { text-align: center; } th.right, td.right { text-align: right; }
hr { border: 0; border-top: 1px solid var(--line); margin: 1rem 0; }
.end { color: var(--dim); font-style: italic; }
pre { background: var(--code); border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0;
  padding: .6rem .8rem; overflow: auto; max-height: 40rem; font-size: .85rem; line-height: 1.45;
  unicode-bidi: plaintext; }
pre, code { font-family: ui-monospace, "Cascadia Mono", "SF Mono", Menlo, Consolas, monospace; }
code { background: var(--code); border-radius: 4px; padding: .05rem .3rem; font-size: .9em; }
pre code { background: none; padding: 0; font-size: inherit; }
details { margin: .4rem 0; } summary { cursor: pointer; color: var(--dim); font-size: .9rem;
  overflow-wrap: anywhere; }
summary b { color: var(--tool); font-weight: 600; } .error > summary b { color: var(--error); }
.thinking { color: var(--dim); font-style: italic; }
img { max-width: 100%; height: auto; border-radius: 6px; border: 1px solid var(--line); }
.divider { display: flex; align-items: center; gap: 1rem; color: var(--dim); font-size: .85rem;
  margin: 1.5rem 0; } .divider::before, .divider::after { content: ""; flex: 1;
  border-top: 1px dashed var(--line); }
footer { max-width: 54rem; margin: 2rem auto; padding: 0 1rem; color: var(--dim);
  font-size: .8rem; }
@media print { article { content-visibility: visible; break-inside: avoid; }
  nav { display: none; } }
"""

POLICY = (
    "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(CSS.encode()).digest()).decode()
    + "'"
)
"""No script, no network, no style but this one."""
