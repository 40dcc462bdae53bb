"""The spool: a file beside the store for messages that the store cannot take.

Only messages go there: nothing that anybody decided, so that bringing them in later is no guess.
docs/operating/spool.md is the operator's page, docs/decisions/0022 has the reasons.
"""
