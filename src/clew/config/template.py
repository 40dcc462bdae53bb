"""The file that `clew config edit` begins with: all in comments, so that it changes nothing."""

from __future__ import annotations

TEMPLATE = """\
# The configuration of clew. Every key: docs/reference/configuration.md.
# Take the "# " off a line to use it; `clew config check` tells what is wrong.
# Keys of providers do not belong here: put them into the environment (OPENAI_API_KEY, ...), or into
# the keyring with `clew config key PROVIDER`.

# model = "openai/gpt-5.4"
# fallback = ["anthropic/claude-sonnet-5"]
# system = "You are a careful assistant."
# store = "~/.clew/clew.db"
# profile = "default"

# [limits]                # where a turn is stopped; 0: no limit
# steps = 100
# turn_cost = 0.0         # US dollars
# day_cost = 0.0

# [chat]
# busy = "steer"          # what becomes of a message typed while a turn runs: steer or queue
# titles = true
# reasoning = false
# vi = false

# [tools]
# timeout = 120.0         # seconds
# policy = { "files.*" = "ask", "files.read_file" = "allow" }

# [compaction]
# model = "openai/gpt-5.4-mini"

# [retention]             # what goes by itself; docs/operating/retention.md
# auto = true
# automation = "90d"      # of what machines made; closed then, in the bin after as long again
# people = "keep"         # or an age: a policy for what people said is announced a day before
# imports = "keep"
# bin = "30d"
# sources = { cron = "30d" }

# [backup]                # points that are made and tested by themselves; docs/operating/backup.md
# folder = "/mnt/disk/clew"   # none: nothing is backed up by itself
# every = "1d"
# keep = 14

# [providers.local]       # any server that speaks Chat Completions
# base_url = "http://127.0.0.1:8080/v1"

# [providers.work]
# kind = "anthropic"
# base_url = "https://gateway.example/anthropic"
# key_env = "WORK_API_KEY"

# [models."local/qwen3"]
# window = 32768
# price = { input = 0.0, output = 0.0 }

# [mcpServers.files]      # or all of them in mcp.json beside this file, as other programs have it
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-filesystem", "."]
# env = { TOKEN = "${FILES_TOKEN}" }
"""
