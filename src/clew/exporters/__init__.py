"""Conversations as files: clew's own lossless JSONL, and what other tools and people read."""
