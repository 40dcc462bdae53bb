"""Compaction: what stands for the old part of a conversation, and when."""
